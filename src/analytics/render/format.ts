import { namedByEnding } from "../export/file-ending.ts";

/** Text formats of an answer; see render.ts. */
export const textFormats = ["table", "vertical", "json", "ndjson", "csv"] as const;
export type TextFormat = (typeof textFormats)[number];

/** Every form of an answer: text, or bytes for programs. */
export const formats = [...textFormats, "arrow", "arrow-stream", "parquet"] as const;
export type Format = (typeof formats)[number];

/** The file endings of formats. */
const endings = {
  table: "txt",
  json: "json",
  ndjson: "ndjson",
  csv: "csv",
  arrow: "arrow",
  "arrow-stream": "arrows",
  parquet: "parquet",
} as const;

/** The format of a file by its ending; null if unknown. */
export function formatOf(file: string): Format | null {
  return namedByEnding(file, endings);
}

export function isTextFormat(format: Format): format is TextFormat {
  return textFormats.some((name) => name === format);
}
