import { DuckDBDecimalType, type DuckDBType, DuckDBTypeId } from "@duckdb/node-api";
import {
  Binary,
  Bool,
  type DataType,
  DateDay,
  Decimal,
  Float32,
  Float64,
  Int8,
  Int16,
  Int32,
  Int64,
  Timestamp,
  TimestampMicrosecond,
  TimestampMillisecond,
  TimestampNanosecond,
  TimestampSecond,
  TimeUnit,
  Uint8,
  Uint16,
  Uint32,
  Uint64,
  Utf8,
} from "apache-arrow";
import type { ResultColumn } from "../query/query.ts";

/**
 * How a DuckDB column becomes an Arrow one:
 * `fixed`: the bytes as they are, `width` a row.
 * `bits`: a byte a row becomes a bit.
 * `widened`: a decimal's `width` bytes become sixteen, with its sign.
 * `hugeint`: sixteen bytes as they are, if they fit 38 digits.
 * `bytes`: strings and blobs.
 * `text`: a type that Arrow or its readers lack, as the text that CSV has for it.
 */
export interface ArrowColumn {
  readonly type: DataType;
  readonly layout: "fixed" | "bits" | "widened" | "hugeint" | "bytes" | "text";
  /** Bytes a row takes in DuckDB's vector. */
  readonly width: number;
}

/** The Arrow column for a DuckDB type. Times keep their unit; only TIMESTAMPTZ has a time zone, which is UTC. */
export function arrowColumn(type: DuckDBType): ArrowColumn {
  if (type instanceof DuckDBDecimalType) {
    const width = type.width <= 4 ? 2 : type.width <= 9 ? 4 : type.width <= 18 ? 8 : 16;
    return {
      type: new Decimal(type.scale, type.width),
      layout: width === 16 ? "fixed" : "widened",
      width,
    };
  }
  const fixed = (arrow: DataType, width: number): ArrowColumn => ({ type: arrow, layout: "fixed", width });
  switch (type.typeId) {
    case DuckDBTypeId.BOOLEAN:
      return { type: new Bool(), layout: "bits", width: 1 };
    case DuckDBTypeId.TINYINT:
      return fixed(new Int8(), 1);
    case DuckDBTypeId.SMALLINT:
      return fixed(new Int16(), 2);
    case DuckDBTypeId.INTEGER:
      return fixed(new Int32(), 4);
    case DuckDBTypeId.BIGINT:
      return fixed(new Int64(), 8);
    case DuckDBTypeId.UTINYINT:
      return fixed(new Uint8(), 1);
    case DuckDBTypeId.USMALLINT:
      return fixed(new Uint16(), 2);
    case DuckDBTypeId.UINTEGER:
      return fixed(new Uint32(), 4);
    case DuckDBTypeId.UBIGINT:
      return fixed(new Uint64(), 8);
    case DuckDBTypeId.HUGEINT:
      return { type: new Decimal(0, 38), layout: "hugeint", width: 16 };
    case DuckDBTypeId.FLOAT:
      return fixed(new Float32(), 4);
    case DuckDBTypeId.DOUBLE:
      return fixed(new Float64(), 8);
    case DuckDBTypeId.DATE:
      return fixed(new DateDay(), 4);
    case DuckDBTypeId.TIMESTAMP_S:
      return fixed(new TimestampSecond(), 8);
    case DuckDBTypeId.TIMESTAMP_MS:
      return fixed(new TimestampMillisecond(), 8);
    case DuckDBTypeId.TIMESTAMP:
      return fixed(new TimestampMicrosecond(), 8);
    case DuckDBTypeId.TIMESTAMP_NS:
      return fixed(new TimestampNanosecond(), 8);
    case DuckDBTypeId.TIMESTAMP_TZ:
      return fixed(new Timestamp(TimeUnit.MICROSECOND, "UTC"), 8);
    case DuckDBTypeId.VARCHAR:
      return { type: new Utf8(), layout: "bytes", width: 16 };
    case DuckDBTypeId.BLOB:
      return { type: new Binary(), layout: "bytes", width: 16 };
    default:
      return { type: new Utf8(), layout: "text", width: 0 };
  }
}

/** Names and types of columns written as text, because readers have no Arrow type for them. */
export function textColumns(columns: readonly ResultColumn[]): string[] {
  return columns
    .filter(({ type }) => arrowColumn(type).layout === "text")
    .map(({ name, type }) => `${name} (${type})`);
}
