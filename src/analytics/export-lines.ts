import {
  canonicalDoubleSql,
  canonicalLineSql,
  canonicalValueSql,
  joinLiterals,
  quotedInJson,
} from "../archive/canonical-sql.ts";
import { identifier, literal } from "../archive/sql.ts";
import type { RowChunk } from "../archive/whole-stream.ts";
import type { Column, Table } from "../model/table.ts";
import type { DecimalForm } from "./export-format.ts";
import { RawStrings } from "./raw-vector.ts";

const pieceBytes = 1024 * 1024;
const newline = 10;

/**
 * A row as one line of NDJSON, without its end: the canonical line, as a gateway sends it. With doubles, exact columns
 * are JSON numbers, and null where there is no value.
 */
export function ndjsonLineSql(table: Table, decimals: DecimalForm): string {
  if (decimals === "exact") return canonicalLineSql(table);
  const parts = table.columns.flatMap((column, index) => {
    const name = identifier(column.name);
    const number = column.kind === "exact";
    const quoted = quotedInJson(column) && !number ? '"' : "";
    return [
      literal(`${index === 0 ? "{" : ","}${JSON.stringify(column.name)}:${quoted}`),
      number ? `coalesce(${canonicalDoubleSql(`${name}::DOUBLE`)}, 'null')` : canonicalValueSql(column, name),
      literal(quoted),
    ];
  });
  return `concat(${joinLiterals([...parts, literal("}")]).join(", ")})`;
}

/** A row as one line of CSV, without its end, as `query --format csv` prints it. */
export function csvLineSql(table: Table, decimals: DecimalForm): string {
  const parts = table.columns.flatMap((column, index) => [
    literal(index === 0 ? "" : ","),
    csvValueSql(column, identifier(column.name), decimals),
  ]);
  return `concat(${joinLiterals(parts).join(", ")})`;
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
      return decimals === "double" ? plainDoubleSql(`${value}::DOUBLE`) : value;
    default:
      return value;
  }
}

/** RFC 3339 with nine decimals; strftime alone fails at the ends of what nanoseconds can say. */
function instantSql(ns: string): string {
  // DuckDB divides towards zero, seconds go downwards
  const below = `(${ns} % 1000000000 < 0)::BIGINT`;
  const seconds = `(${ns} // 1000000000 - ${below})`;
  const rest = `(${ns} % 1000000000 + 1000000000 * ${below})`;
  return `concat(strftime(make_timestamp(${seconds} * 1000000), '%Y-%m-%dT%H:%M:%S.'), lpad(${rest}::VARCHAR, 9, '0'), 'Z')`;
}

/** NaN and infinities without the quotes they have in JSON. */
function plainDoubleSql(value: string): string {
  return `trim(${canonicalDoubleSql(value)}, '"')`;
}

/** The only column of the chunks, a line a row, as text with line ends, in pieces of about 1 MiB. */
export async function* lineText(header: string, chunks: AsyncIterable<RowChunk>): AsyncGenerator<Uint8Array> {
  let piece = Buffer.from(header);
  let held = piece.byteLength;
  for await (const { chunk, rows } of chunks) {
    const lines = new RawStrings(chunk, 0);
    for (let row = 0; row < rows; row++) {
      const end = held + lines.length(row) + 1;
      if (end > piece.byteLength) {
        if (held > 0) yield piece.subarray(0, held);
        piece = Buffer.allocUnsafe(Math.max(pieceBytes, end - held));
        held = 0;
      }
      held += lines.copy(row, piece, held);
      piece[held++] = newline;
    }
  }
  if (held > 0) yield piece.subarray(0, held);
}
