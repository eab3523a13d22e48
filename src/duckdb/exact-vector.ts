import type { DecimalType } from "../model/profile/exact-types.ts";
import { rawVector } from "./raw-vector.ts";
import type { RowChunk } from "./whole-stream.ts";

/** Scaled integers: 64 bits each if their type has at most 18 digits. */
export type ExactValues = BigInt64Array | bigint[];

/** Most digits of a DECIMAL in 64 bits, and most digits of any. */
const narrow = 18;
const widest = 38;

/** Zeros: room for so many values of a type. */
export function exactValues({ precision }: DecimalType, count: number): ExactValues {
  return precision <= narrow ? new BigInt64Array(count) : new Array<bigint>(count).fill(0n);
}

/**
 * A type for all values of these types, in 64 or 128 bits; `copyExact` reads columns cast to it. If it would need more
 * than 38 digits, digits before the point are dropped, and DuckDB refuses values that have them.
 */
export function commonDecimal(types: readonly DecimalType[]): DecimalType {
  const scale = Math.max(...types.map((type) => type.scale));
  const whole = Math.max(...types.map((type) => type.precision - type.scale));
  return { precision: scale + whole <= narrow ? narrow : widest, scale };
}

export function decimalSql({ precision, scale }: DecimalType): string {
  return `DECIMAL(${precision},${scale})`;
}

/** Copies a chunk's column of a `commonDecimal` type without NULL to the places from `at`. */
export function copyExact({ chunk, rows }: RowChunk, column: number, to: ExactValues, at: number): void {
  if (to instanceof BigInt64Array) {
    to.set(int64s({ chunk, rows }, column), at);
    return;
  }
  const { data } = rawVector(chunk, column, 16);
  const words = new BigInt64Array(data.buffer, data.byteOffset, rows * 2);
  for (let row = 0; row < rows; row++) {
    to[at + row] = (words[row * 2 + 1]! << 64n) | BigInt.asUintN(64, words[row * 2]!);
  }
}

/** A column of 64-bit integers, including timestamps, without NULL. */
export function int64s({ chunk, rows }: RowChunk, column: number): BigInt64Array {
  const { data } = rawVector(chunk, column, 8);
  return new BigInt64Array(data.buffer, data.byteOffset, rows);
}

/** A column of unsigned 64-bit integers without NULL. */
export function uint64s({ chunk, rows }: RowChunk, column: number): BigUint64Array {
  const { data } = rawVector(chunk, column, 8);
  return new BigUint64Array(data.buffer, data.byteOffset, rows);
}

/** A column of 32-bit integers without NULL. */
export function int32s({ chunk, rows }: RowChunk, column: number): Int32Array {
  const { data } = rawVector(chunk, column, 4);
  return new Int32Array(data.buffer, data.byteOffset, rows);
}

/** A column of doubles without NULL. */
export function float64s({ chunk, rows }: RowChunk, column: number): Float64Array {
  const { data } = rawVector(chunk, column, 8);
  return new Float64Array(data.buffer, data.byteOffset, rows);
}

const half = 2 ** 32;

/** Returns the double nearest to a column's value, without a BigInt for each, which would take most of the time. */
export function doubleAt(values: ExactValues): (index: number) => number {
  if (!(values instanceof BigInt64Array)) return (index) => Number(values[index]!);
  const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
  return (index) => halves[index * 2 + 1]! * half + (halves[index * 2]! >>> 0);
}

/** Returns the difference of two values of a column, exact below 2^53. */
export function differenceAt(values: BigInt64Array): (index: number, from: number) => number {
  const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
  return (index, from) =>
    (halves[index * 2 + 1]! - halves[from * 2 + 1]!) * half +
    ((halves[index * 2]! >>> 0) - (halves[from * 2]! >>> 0));
}
