import type { DuckDBValue } from "@duckdb/node-api";
import type { QueryResult } from "../query/query.ts";
import { jsonCell, textCell } from "./cell.ts";
import type { TextFormat } from "./format.ts";
import { renderTable, renderVertical, type ShownOptions } from "./render-shown.ts";
import { uniqueNames } from "./unique-names.ts";

/** A result as text, in pieces, in bounded memory; the pieces end when the result is whole. See the format's own words. */
export function render(
  result: QueryResult,
  format: TextFormat,
  options: ShownOptions = {},
): AsyncIterable<string> {
  switch (format) {
    case "table":
      return renderTable(result, options);
    case "vertical":
      return renderVertical(result, options);
    case "json":
      return renderJson(result);
    case "ndjson":
      return renderNdjson(result);
    case "csv":
      return renderCsv(result);
  }
}

/** One JSON object per line; values as `jsonCell` writes them. Columns of the same name get _2, _3, …. */
async function* renderNdjson(result: QueryResult): AsyncGenerator<string> {
  const object = objectOf(result);
  for await (const batch of result.batches()) yield batch.map((row) => `${object(row)}\n`).join("");
}

/** One JSON array of objects, one per line. If the result fails, the array stays open, so no reader takes it for complete. */
async function* renderJson(result: QueryResult): AsyncGenerator<string> {
  const object = objectOf(result);
  let separator = "[\n";
  for await (const batch of result.batches()) {
    yield separator + batch.map(object).join(",\n");
    separator = ",\n";
  }
  yield separator === "[\n" ? "[]\n" : "\n]\n";
}

/**
 * RFC 4180 with a header, lines ended by a line feed. NULL is an empty field, the empty string is `""`. Decimals with
 * their digits, times as RFC 3339.
 */
async function* renderCsv(result: QueryResult): AsyncGenerator<string> {
  yield `${result.columns.map(({ name }) => csvField(name)).join(",")}\n`;
  for await (const batch of result.batches()) {
    yield batch
      .map((row) => `${row.map((v) => (v === null ? "" : csvField(textCell(v)))).join(",")}\n`)
      .join("");
  }
}

function csvField(text: string): string {
  return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function objectOf(result: QueryResult): (row: readonly DuckDBValue[]) => string {
  const keys = uniqueNames(result.columns.map(({ name }) => name)).map((name) => JSON.stringify(name));
  return (row) => `{${row.map((value, index) => `${keys[index]}:${jsonCell(value)}`).join(",")}}`;
}
