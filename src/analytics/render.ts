import { DuckDBDecimalValue, type DuckDBValue } from "@duckdb/node-api";
import { visibleLines } from "../model/visible-text.ts";
import { alignedTable } from "./aligned-table.ts";
import { jsonCell, textCell } from "./cell.ts";
import type { Format } from "./format.ts";
import type { QueryResult } from "./query.ts";

export interface RenderOptions {
  /** Rows a table shows; the other formats always give all. Default 100. */
  readonly tableRows?: number;
  /** Called with a sentence for people when a table does not show every row. */
  readonly onCut?: (note: string) => void;
}

/** A result as text, in pieces, in bounded memory; the pieces end when the result is whole. See the format's own words. */
export function render(
  result: QueryResult,
  format: Format,
  options: RenderOptions = {},
): AsyncIterable<string> {
  switch (format) {
    case "table":
      return renderTable(result, options);
    case "json":
      return renderJson(result);
    case "ndjson":
      return renderNdjson(result);
    case "csv":
      return renderCsv(result);
  }
}

/** One JSON object a line; values as `jsonCell` writes them. Columns of the same name get _2, _3, …. */
async function* renderNdjson(result: QueryResult): AsyncGenerator<string> {
  const object = objectOf(result);
  for await (const batch of result.batches()) yield batch.map((row) => `${object(row)}\n`).join("");
}

/** One JSON array of objects, a line each. A result that fails leaves the array open, so that no reader takes it for whole. */
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

/** Aligned text: numbers to the right, NULL as such, what a terminal would obey escaped. */
async function* renderTable(result: QueryResult, options: RenderOptions): AsyncGenerator<string> {
  const most = options.tableRows ?? 100;
  const rows: string[][] = [];
  const numeric = result.columns.map(() => true);
  let cut = false;
  for await (const batch of result.batches()) {
    for (const row of batch) {
      if (rows.length === most) {
        cut = true;
        break;
      }
      row.forEach((value, index) => {
        if (value !== null && !isNumeric(value)) numeric[index] = false;
      });
      rows.push(row.map((value) => (value === null ? "NULL" : textCell(value))));
    }
    if (cut) break;
  }
  const explained = result.columns.length === 2 && result.columns[0]?.name === "explain_key";
  if (explained) {
    for (const row of rows) yield `${visibleLines(row[1] ?? "")}\n`;
    return;
  }
  yield alignedTable(
    result.columns.map(({ name }) => name),
    rows,
    numeric,
  );
  if (cut) options.onCut?.(`only the first ${most} rows are shown; --format csv or ndjson gives all`);
}

function isNumeric(value: DuckDBValue): boolean {
  return typeof value === "number" || typeof value === "bigint" || value instanceof DuckDBDecimalValue;
}

function objectOf(result: QueryResult): (row: readonly DuckDBValue[]) => string {
  const seen = new Map<string, number>();
  const keys = result.columns.map(({ name }) => {
    const times = (seen.get(name) ?? 0) + 1;
    seen.set(name, times);
    return JSON.stringify(times === 1 ? name : `${name}_${times}`);
  });
  return (row) => `{${row.map((value, index) => `${keys[index]}:${jsonCell(value)}`).join(",")}}`;
}
