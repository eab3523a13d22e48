import { namedByEnding } from "./file-ending.ts";

/** Formats in which a table can be exported; the value is the ending of its files. */
export const exportFormats = {
  parquet: "parquet",
  arrow: "arrow",
  "arrow-stream": "arrows",
  duckdb: "duckdb",
  ndjson: "ndjson",
  csv: "csv",
} as const;
export type ExportFormat = keyof typeof exportFormats;

/** The format of a file by its ending; null if unknown. */
export function exportFormatOf(file: string): ExportFormat | null {
  return namedByEnding(file, exportFormats);
}

/** How a table may be split into files. */
export const partitions = ["run"] as const;
export type Partition = (typeof partitions)[number];

/** Formats that are written from front to back, and so may go to standard output. */
export const streamFormats = ["arrow-stream", "ndjson", "csv"] as const;
export type StreamFormat = (typeof streamFormats)[number];

export function isStreamFormat(format: ExportFormat): format is StreamFormat {
  return streamFormats.some((name) => name === format);
}

/** How exact columns leave the archive: as decimals, or as the nearest doubles. */
export const decimalForms = ["exact", "double"] as const;
export type DecimalForm = (typeof decimalForms)[number];
