import type { DecimalType } from "../model/profile/exact-types.ts";
import { rawVector } from "./raw-vector.ts";
import type { RowChunk } from "./whole-stream.ts";

/** Scaled integers: 64 bits each where their type has at most 18 digits. */
export type ExactValues = BigInt64Array | bigint[];

/** Digits of a DECIMAL that DuckDB keeps in 64 bits, and the most that it has. */
const narrow = 18;
const widest = 38;

/** Zeros: room for so many values of a type. */
export function exactValues({ precision }: DecimalType, count: number): ExactValues {
  return precision <= narrow ? new BigInt64Array(count) : new Array<bigint>(count).fill(0n);
}

/**
 * A type that holds what any of these does, in 64 or 128 bits: what is to be read by `copyExact` is cast to it. Where it
 * would need more than 38 digits, digits before the point are left out, and DuckDB refuses a value that has them.
 */
export function commonDecimal(types: readonly DecimalType[]): DecimalType {
  const scale = Math.max(...types.map((type) => type.scale));
  const whole = Math.max(...types.map((type) => type.precision - type.scale));
  return { precision: scale + whole <= narrow ? narrow : widest, scale };
}

export function decimalSql({ precision, scale }: DecimalType): string {
  return `DECIMAL(${precision},${scale})`;
}

/** Copies a column of a chunk, of a type that `commonDecimal` gave and without NULL, to where `at` says. */
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

/** A column of 64-bit integers, timestamps among them, without NULL. */
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
