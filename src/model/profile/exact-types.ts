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

/** Whether every value of one decimal type is, exactly, one of the other. */
export function holds(outer: string, inner: string): boolean {
  const [a, b] = [decimalType(outer), decimalType(inner)];
  return a.scale >= b.scale && a.precision - a.scale >= b.precision - b.scale;
}
