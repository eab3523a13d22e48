import { type ErrorPlace, RunvaultError } from "../model/error.ts";
import type { Column, Table } from "../model/profile/table.ts";

/** Longest line of a row. */
export const longestLineBytes = 16 * 1024 * 1024;

/** The error for a line that is too long, whether or not it is known to be a row. */
export function lineTooLong(what: "row" | "line", place: ErrorPlace = {}): RunvaultError {
  return new RunvaultError("line_too_long", `a ${what} is longer than ${longestLineBytes >> 20} MiB`, {
    place,
  });
}

/** A row's values in canonical form: text for 64-bit integers and exact numbers, numbers for the rest. */
export type Row = Record<string, string | number | bigint>;

/**
 * The canonical line of a row, without the line end: fields in proto order, no blanks, 64-bit integers as strings,
 * doubles as ECMAScript prints them (NaN and infinities as strings), control characters as lower-case \u00xx. Throws
 * `malformed_row` if a column is missing or its value is not of its kind.
 */
export function canonicalLine(table: Table, row: Row): string {
  return `{${table.columns.map((column) => `"${column.name}":${canonicalValue(column, row[column.name])}`).join(",")}}`;
}

function canonicalValue(column: Column, value: string | number | bigint | undefined): string {
  if (value === undefined) throw new RunvaultError("malformed_row", `column ${column.name} is missing`);
  switch (column.kind) {
    case "uint32":
      return integerText(column, value);
    case "double":
      return canonicalDouble(typeof value === "string" ? doubleOf(column, value) : Number(value));
    case "uint64":
    case "int64":
    case "timestamp":
      return `"${integerText(column, value)}"`;
    default:
      // JSON.stringify escapes exactly as canonical lines do, in lower case
      return JSON.stringify(String(value));
  }
}

const integer = /^(?:0|-?[1-9]\d*)$/;
const double = /^(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|NaN|-?Infinity)$/;

function integerText(column: Column, value: string | number | bigint): string {
  const text = String(value);
  // a number beyond 2^53 may already have been rounded
  const whole =
    typeof value === "string"
      ? integer.test(value)
      : typeof value === "bigint" || Number.isSafeInteger(value);
  if (!whole)
    throw new RunvaultError(
      "malformed_row",
      `column ${column.name} is not an integer: ${JSON.stringify(text)}`,
    );
  return text;
}

function doubleOf(column: Column, text: string): number {
  if (double.test(text)) return Number(text);
  throw new RunvaultError("malformed_row", `column ${column.name} is not a number: ${JSON.stringify(text)}`);
}

/**
 * A double in a canonical line: the shortest text that reads back the same; JSON would print -0 as 0, so its sign is
 * kept.
 */
export function canonicalDouble(value: number): string {
  if (Number.isNaN(value)) return '"NaN"';
  if (value === Number.POSITIVE_INFINITY) return '"Infinity"';
  if (value === Number.NEGATIVE_INFINITY) return '"-Infinity"';
  return Object.is(value, -0) ? "-0" : String(value);
}
