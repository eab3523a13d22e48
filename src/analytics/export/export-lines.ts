import {
  canonicalDoubleSql,
  canonicalLineSql,
  canonicalValueSql,
  extraMember,
  joinLiterals,
  quotedInJson,
} from "../../duckdb/canonical-sql.ts";
import { doubleSql } from "../../duckdb/double-sql.ts";
import { RawStrings } from "../../duckdb/raw-vector.ts";
import { identifier, literal } from "../../duckdb/sql.ts";
import type { RowChunk } from "../../duckdb/whole-stream.ts";
import type { Column, Table } from "../../model/profile/table.ts";
import type { DecimalForm } from "./export-format.ts";

/**
 * A row as one line of NDJSON, with its end: the canonical line, as a gateway sends it. With doubles, exact columns are
 * JSON numbers, and null if there is no value. `extra` is SQL for the text of the member of that name, where rows have
 * one.
 */
export function ndjsonLineSql(table: Table, decimals: DecimalForm, extra?: string | undefined): string {
  if (decimals === "exact") return canonicalLineSql(table, "", "\n", extra);
  const parts = table.columns.flatMap((column, index) => {
    const name = identifier(column.name);
    const number = column.kind === "exact";
    const quoted = quotedInJson(column) && !number ? '"' : "";
    return [
      literal(`${index === 0 ? "{" : ","}${JSON.stringify(column.name)}:${quoted}`),
      number ? `coalesce(${canonicalDoubleSql(doubleSql(name))}, 'null')` : canonicalValueSql(column, name),
      literal(quoted),
    ];
  });
  return `concat(${joinLiterals([...parts, ...extraMember(extra), literal("}\n")]).join(", ")})`;
}

/** A row as one line of CSV, with its end, as `query --format csv` prints it. */
export function csvLineSql(table: Table, decimals: DecimalForm): string {
  const parts = table.columns.flatMap((column, index) => [
    literal(index === 0 ? "" : ","),
    csvValueSql(column, identifier(column.name), decimals),
  ]);
  return `concat(${joinLiterals([...parts, literal("\n")]).join(", ")})`;
}

/** The header line of CSV, with its end. The names of columns need no quotes. */
export function csvHeader(table: Table): string {
  return `${table.columns.map(({ name }) => name).join(",")}\n`;
}

function csvValueSql({ kind }: Column, value: string, decimals: DecimalForm): string {
  switch (kind) {
    case "timestamp":
      return instantSql(`epoch_ns(${value})`);
    case "string":
      return `CASE WHEN regexp_matches(${value}, '^$|[",\\r\\n]') THEN concat('"', replace(${value}, '"', '""'), '"') ELSE ${value} END`;
    case "double":
      return plainDoubleSql(value);
    case "exact":
      return decimals === "double" ? plainDoubleSql(doubleSql(value)) : value;
    default:
      return value;
  }
}

/** RFC 3339 with nine decimals; strftime alone fails at the ends of the range of nanoseconds. */
function instantSql(ns: string): string {
  // DuckDB's division rounds towards zero, but seconds must round down
  const below = `(${ns} % 1000000000 < 0)::BIGINT`;
  const seconds = `(${ns} // 1000000000 - ${below})`;
  const rest = `(${ns} % 1000000000 + 1000000000 * ${below})`;
  return `concat(strftime(make_timestamp(${seconds} * 1000000), '%Y-%m-%dT%H:%M:%S.'), lpad(${rest}::VARCHAR, 9, '0'), 'Z')`;
}

/** NaN and infinities without the quotes they have in JSON. */
function plainDoubleSql(value: string): string {
  return `trim(${canonicalDoubleSql(value)}, '"')`;
}

/** The only column of the chunks, a line with its end a row, as text, a chunk at a time. */
export async function* lineText(header: string, chunks: AsyncIterable<RowChunk>): AsyncGenerator<Uint8Array> {
  if (header !== "") yield Buffer.from(header);
  for await (const { chunk, rows } of chunks) yield new RawStrings(chunk, 0).joined(rows);
}
