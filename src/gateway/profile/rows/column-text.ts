import type { TimeUnit } from "../../../model/profile/row-map.ts";
import type { Column } from "../../../model/profile/table.ts";
import { int64Max, int64Min, parseTime } from "../../../model/time.ts";
import { canonicalDouble } from "../../../row/line.ts";
import { exactDecimal } from "./exact-decimal.ts";
import { type ForeignValue, NotARow, shownValue } from "./foreign-json.ts";

/** How one column reads its values. */
export interface ValueRules {
  readonly column: Column;
  readonly unit: TimeUnit;
  /** Whether an exact number may come unquoted. */
  readonly bareNumbers: boolean;
}

/** A column's empty value in a canonical line. */
export function emptyText({ kind }: Column): string {
  switch (kind) {
    case "string":
    case "exact":
      return '""';
    case "uint32":
      return "0";
    case "double":
      return '"NaN"';
    default:
      return '"0"';
  }
}

/** Whether `null` counts as the column's empty value even for fields that are not optional. */
export function takesNull({ kind }: Column): boolean {
  return kind === "string" || kind === "exact" || kind === "double";
}

/**
 * A value's text in a canonical line, with quotes. Throws NotARow with what is wrong if the value does
 * not fit the column. The caller handles `null`.
 */
export function columnText({ column, unit, bareNumbers }: ValueRules, value: ForeignValue): string {
  const isText = value.kind === "string";
  const isNumber = value.kind === "number";
  switch (column.kind) {
    case "string":
      if (!isText) throw new NotARow(`${shownValue(value)} is not text`);
      return JSON.stringify(value.text);
    case "exact": {
      if (isNumber && !bareNumbers) {
        throw new NotARow(
          `${shownValue(value)} is a bare number, which the profile does not allow (numbers: exact)`,
        );
      }
      if (isText && value.text === "") return '""';
      return `"${decimalOf(value, 0, "a decimal number")}"`;
    }
    case "double":
      return doubleOf(value);
    case "timestamp":
      return `"${timeOf(value, unit)}"`;
    case "uint32":
      return integerOf(value, false);
    case "uint64":
      return `"${integerOf(value, false)}"`;
    case "int64":
      return `"${integerOf(value, true)}"`;
  }
}

function decimalOf(value: ForeignValue, shift: number, wanted: string): string {
  const text =
    value.kind === "string" || value.kind === "number" ? exactDecimal(value.text, shift) : undefined;
  if (text === undefined) throw new NotARow(`${shownValue(value)} is not ${wanted}`);
  if (text === null) throw new NotARow(`${shownValue(value)} has an exponent too large for any column`);
  return text;
}

function integerOf(value: ForeignValue, signed: boolean): string {
  const wanted = signed ? "an integer" : "an unsigned integer";
  const text = decimalOf(value, 0, wanted);
  if (text.includes(".") || (!signed && text.startsWith("-"))) {
    throw new NotARow(`${shownValue(value)} is not ${wanted}`);
  }
  return text;
}

const doubleText = /^-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/;
const specialDouble = /^(?:NaN|-?Infinity)$/;

function doubleOf(value: ForeignValue): string {
  if (value.kind === "object" || value.kind === "array")
    throw new NotARow(`${shownValue(value)} is not a number`);
  if (value.kind !== "number" && specialDouble.test(value.text)) return `"${value.text}"`;
  const text = value.kind === "word" ? undefined : shortestDouble(value.text);
  if (text === undefined) throw new NotARow(`${shownValue(value)} is outside the range of a double`);
  return text;
}

/** A number in ECMAScript's spelling of the nearest double; undefined if it is not a number, or beyond all doubles. */
export function shortestDouble(text: string): string | undefined {
  if (!doubleText.test(text)) return undefined;
  const number = Number(text);
  return Number.isFinite(number) ? canonicalDouble(number) : undefined;
}

const shifts: Readonly<Record<Exclude<TimeUnit, "rfc3339">, number>> = { ns: 0, us: 3, ms: 6, s: 9 };
const rfc3339 = /^(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[-+]\d\d:\d\d)$/;

function timeOf(value: ForeignValue, unit: TimeUnit): string {
  const text = unit === "rfc3339" ? instantOf(value) : decimalOf(value, shifts[unit], `a time in ${unit}`);
  if (text.includes(".")) throw new NotARow(`${shownValue(value)} is finer than a nanosecond`);
  const ns = BigInt(text);
  if (ns < int64Min || ns > int64Max) {
    throw new NotARow(`${shownValue(value)} is outside the range of 64-bit nanoseconds`);
  }
  return text;
}

function instantOf(value: ForeignValue): string {
  const match = value.kind === "string" ? rfc3339.exec(value.text) : null;
  const wrong = () => new NotARow(`${shownValue(value)} is not an RFC 3339 time with a zone`);
  if (match === null) throw wrong();
  const [, wall = "", fraction = "", zone = ""] = match;
  let end = fraction.length;
  while (fraction[end - 1] === "0") end--;
  if (end > 9) throw new NotARow(`${shownValue(value)} is finer than a nanosecond`);
  const digits = fraction.slice(0, end);
  try {
    return parseTime(`${wall}${digits === "" ? "" : `.${digits}`}${zone}`).toString();
  } catch {
    throw wrong();
  }
}
