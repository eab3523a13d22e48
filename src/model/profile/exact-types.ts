import { RunvaultError } from "../error.ts";
import type { Table } from "./table.ts";

/** A DECIMAL column type: `precision` digits in all, `scale` of them after the point. */
export interface DecimalType {
  readonly precision: number;
  readonly scale: number;
}

/** The type of every exact column by name, such as `DECIMAL(18,9)`. */
export type ExactTypes = Readonly<Record<string, string>>;

/** Every exact column of the table with its default type. */
export function defaultExactTypes(table: Table): Record<string, string> {
  return Object.fromEntries(
    table.columns.flatMap(({ name, exactType }) => (exactType === undefined ? [] : [[name, exactType]])),
  );
}

/** Whether a text is a DECIMAL type that DuckDB has. */
export function isDecimalType(text: string): boolean {
  return parseDecimalType(text) !== null;
}

/** Reads `DECIMAL(p,s)`. Throws `internal` on anything else: such types come from the archive's own description. */
export function decimalType(text: string): DecimalType {
  const type = parseDecimalType(text);
  if (type === null) throw new RunvaultError("internal", `not a decimal type: ${text}`);
  return type;
}

function parseDecimalType(text: string): DecimalType | null {
  const match = /^DECIMAL\((\d{1,2}), ?(\d{1,2})\)$/.exec(text);
  if (match === null) return null;
  const [precision, scale] = [Number(match[1]), Number(match[2])];
  return precision >= 1 && precision <= 38 && scale <= precision ? { precision, scale } : null;
}

/** The type of one exact column. Throws `internal` when the archive names none. */
export function exactType(exactTypes: ExactTypes, column: string): DecimalType {
  const text = exactTypes[column];
  if (text === undefined) throw new RunvaultError("internal", `column ${column} has no decimal type`);
  return decimalType(text);
}

/** Whether two sets of types are the same, whatever their order. */
export function sameTypes(a: ExactTypes, b: ExactTypes): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => a[name] === b[name]);
}

/** Whether one decimal type holds every value of the other exactly. */
export function holds(outer: string, inner: string): boolean {
  const [a, b] = [decimalType(outer), decimalType(inner)];
  return a.scale >= b.scale && a.precision - a.scale >= b.precision - b.scale;
}

/** Most digits of a DECIMAL. */
export const mostDigits = 38;

/** Digits of a value before the point, at least one, and after it, without insignificant zeros. */
export interface Digits {
  readonly whole: number;
  readonly scale: number;
}

/** The digits of a decimal text. */
export function digitsOf(value: string): Digits {
  const [whole = "", fraction = ""] = value.replace(/^-?0*/, "").split(".");
  return { whole: Math.max(1, whole.length), scale: fraction.replace(/0+$/, "").length };
}

/** Whether a type has room for these digits on both sides of the point. */
export function hasRoom({ precision, scale }: DecimalType, digits: Digits): boolean {
  return digits.whole <= precision - scale && digits.scale <= scale;
}

/**
 * A type of 38 digits for values of so many digits, if `type` is too narrow; null if no type holds them all. It holds
 * everything that `type` does, and leaves spare digits on both sides of the point. If that exceeds 38 digits, the side
 * less needed by these values shrinks: a change of a column must check that no value is lost.
 */
export function widerType(type: string, { whole, scale }: Digits): string | null {
  if (whole + scale > mostDigits) return null;
  const present = decimalType(type);
  const kept = Math.max(scale, present.scale);
  const free = mostDigits - kept - Math.max(whole, present.precision - present.scale);
  const widest = free < 0 ? Math.min(kept, mostDigits - whole) : kept + Math.ceil(free / 2);
  return `DECIMAL(${mostDigits},${widest})`;
}
