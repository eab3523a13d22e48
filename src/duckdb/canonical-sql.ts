import { extraName } from "../model/profile/extra-column.ts";
import type { Column, Table } from "../model/profile/table.ts";
import { identifier, literal } from "./sql.ts";

/**
 * SQL for a row's canonical line (see row/line.ts), from columns typed as in Parquet. `prefix` qualifies the columns
 * (`"t."`). `end` follows the line. `extra` is SQL for the text of that member, NULL for none: it is not part of the
 * canonical line.
 */
export function canonicalLineSql(
  table: Table,
  prefix = "",
  end: "" | "\n" = "",
  extra?: string | undefined,
): string {
  const parts = table.columns.flatMap((column, index) => {
    const quoted = quotedInJson(column) ? '"' : "";
    return [
      literal(`${index === 0 ? "{" : ","}${JSON.stringify(column.name)}:${quoted}`),
      canonicalValueSql(column, `${prefix}${identifier(column.name)}`),
      literal(quoted),
    ];
  });
  return `concat(${joinLiterals([...parts, ...extraMember(extra), literal(`}${end}`)]).join(", ")})`;
}

/** The member `extra` of a line, as an argument of `concat`, which skips NULL. `extra` is SQL for its text. */
export function extraMember(extra: string | undefined): string[] {
  return extra === undefined ? [] : [`(${literal(`,${JSON.stringify(extraName)}:`)} || ${extra})`];
}

/** Whether the canonical line always quotes a column's value; doubles bring their own quotes. */
export function quotedInJson(column: Column): boolean {
  return column.kind !== "uint32" && column.kind !== "double";
}

/** SQL for a value as in the canonical line, between the quotes if `quotedInJson`. */
export function canonicalValueSql(column: Column, value: string): string {
  switch (column.kind) {
    case "uint32":
    case "uint64":
    case "int64":
      return value;
    case "timestamp":
      return `epoch_ns(${value})`;
    case "exact":
      return canonicalDecimalSql(value);
    case "double":
      return canonicalDoubleSql(value);
    case "string":
      return escapedStringSql(value);
  }
}

/** SQL for the canonical text of a DECIMAL with a scale: no trailing zeros, the empty string for NULL. */
export function canonicalDecimalSql(value: string): string {
  const text = `CAST(${value} AS VARCHAR)`;
  return `CASE WHEN ${value} IS NULL THEN '' WHEN contains(${text}, '.') THEN rtrim(rtrim(${text}, '0'), '.') ELSE ${text} END`;
}

/**
 * SQL for a DOUBLE as ECMAScript prints it, NaN and infinities in quotes, -0 as -0. DuckDB prints the same shortest
 * digits but changes to exponents at 1e16 and 1e-5 (ECMAScript: at 1e21 and 1e-7) and pads these to two digits.
 */
export function canonicalDoubleSql(value: string): string {
  const text = `CAST(${value} AS VARCHAR)`;
  const sign = `CASE WHEN ${value} < 0 THEN '-' ELSE '' END`;
  const mantissa = `split_part(ltrim(${text}, '-'), 'e', 1)`;
  const digits = `replace(${mantissa}, '.', '')`;
  const exponent = `CAST(split_part(${text}, 'e', 2) AS INTEGER)`;
  return `CASE
    WHEN NOT isfinite(${value}) THEN CASE WHEN isnan(${value}) THEN '"NaN"' WHEN ${value} > 0 THEN '"Infinity"' ELSE '"-Infinity"' END
    WHEN NOT contains(${text}, 'e') THEN CASE WHEN suffix(${text}, '.0') THEN left(${text}, -2) ELSE ${text} END
    WHEN ${exponent} BETWEEN 0 AND 20 THEN concat(${sign}, rpad(${digits}, ${exponent} + 1, '0'))
    WHEN ${exponent} BETWEEN -6 AND -1 THEN concat(${sign}, '0.', repeat('0', -${exponent} - 1), ${digits})
    ELSE concat(${sign}, ${mantissa}, 'e', CASE WHEN ${exponent} < 0 THEN '-' ELSE '+' END, abs(${exponent}))
  END`.replaceAll(/\n\s*/g, " ");
}

/**
 * SQL for a string with the escapes of JSON.stringify, without the quotes. Hardly any value needs one, so what matters
 * is how long DuckDB takes to plan this: for a few rows that is most of the time.
 */
export function escapedStringSql(value: string): string {
  const character = `CASE WHEN c = '"' THEN '\\"' WHEN c = '\\' THEN '\\\\' WHEN c < ' ' THEN ${controlEscapes}[ascii(c) + 1] ELSE c END`;
  const escaped = `array_to_string(list_transform(regexp_extract_all(${value}, '(?s).'), lambda c: ${character}), '')`;
  return `CASE WHEN regexp_matches(${value}, '["\\\\\\x00-\\x1f]') THEN ${escaped} ELSE ${value} END`;
}

/** The escapes of control characters as one literal, which is planned faster than thirty-two. */
const controlEscapes = `string_split(${literal(
  Array.from({ length: 0x20 }, (_, code) => JSON.stringify(String.fromCharCode(code)).slice(1, -1)).join(" "),
)}, ' ')`;

/**
 * SQL of the row hash over a relation's lines: one row with `rows` (UBIGINT) and `hash` (HUGEINT). The hash is the sum
 * of the first 64 bits of each line's md5, its first sixteen hex digits read as an unsigned number.
 */
export function rowHashSql(line: string, from: string): string {
  return `SELECT CAST(count(*) AS UBIGINT) AS "rows", coalesce(sum(CAST('0x' || left(md5(${line}), 16) AS UBIGINT)), 0::HUGEINT) AS hash FROM ${from}`;
}

/** Joins adjacent literals, so that fewer arguments are copied for each row. */
export function joinLiterals(parts: readonly string[]): string[] {
  const joined: string[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (part === "''") continue;
    if (last !== undefined && isLiteral(last) && isLiteral(part))
      joined[joined.length - 1] = last.slice(0, -1) + part.slice(1);
    else joined.push(part);
  }
  return joined;
}

function isLiteral(sql: string): boolean {
  return /^'(?:[^']|'')*'$/.test(sql);
}
