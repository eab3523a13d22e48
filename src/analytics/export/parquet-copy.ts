import {
  DuckDBArrayType,
  DuckDBListType,
  DuckDBMapType,
  DuckDBStructType,
  type DuckDBType,
  DuckDBTypeId,
} from "@duckdb/node-api";
import { parquetOptions, usualDictionaryLimit } from "../../duckdb/parquet-options.ts";
import { identifier, literal } from "../../duckdb/sql.ts";
import { uniqueNames } from "../render/unique-names.ts";

/** Writes the rows of a SELECT, which is safe inside parentheses, as a Parquet file that has every value exactly. */
export function parquetCopySql(
  select: string,
  columns: readonly { readonly name: string; readonly type: DuckDBType }[],
  file: string,
): string {
  const places = columns.map((_, index) => `c${index}`).join(", ");
  const names = uniqueNames(columns.map(({ name }) => name));
  const list = columns.map(
    ({ type }, index) => `CAST(c${index} AS ${parquetType(type)}) AS ${identifier(names[index]!)}`,
  );
  const hasDoubles = columns.some(({ type }) => /DOUBLE|FLOAT/.test(parquetType(type)));
  return `COPY (SELECT ${list.join(", ")} FROM (\n${select}\n) q(${places})) TO ${literal(file)} (${parquetOptions(hasDoubles ? 0 : usualDictionaryLimit)})`;
}

/**
 * The type that a column has to be cast to. DuckDB writes integers of 128 bits as doubles, milliseconds as another
 * time, and intervals without their microseconds, without a warning. Types that Parquet or its readers lack become
 * text.
 */
function parquetType(type: DuckDBType): string {
  if (type instanceof DuckDBListType || type instanceof DuckDBArrayType)
    return `${parquetType(type.valueType)}[]`;
  if (type instanceof DuckDBMapType) {
    return `MAP(${parquetType(type.keyType)}, ${parquetType(type.valueType)})`;
  }
  if (type instanceof DuckDBStructType) {
    // a struct without names cannot be written as a type
    if (type.entryNames.includes("")) return "VARCHAR";
    const fields = type.entryNames.map(
      (name, index) => `${identifier(name)} ${parquetType(type.entryTypes[index]!)}`,
    );
    return `STRUCT(${fields.join(", ")})`;
  }
  switch (type.typeId) {
    case DuckDBTypeId.HUGEINT:
      return "DECIMAL(38,0)";
    case DuckDBTypeId.TIMESTAMP_S:
    case DuckDBTypeId.TIMESTAMP_MS:
      return "TIMESTAMP";
    default:
      return asTheyAre.has(type.typeId) ? String(type) : "VARCHAR";
  }
}

const asTheyAre: ReadonlySet<DuckDBTypeId> = new Set([
  DuckDBTypeId.BOOLEAN,
  DuckDBTypeId.TINYINT,
  DuckDBTypeId.SMALLINT,
  DuckDBTypeId.INTEGER,
  DuckDBTypeId.BIGINT,
  DuckDBTypeId.UTINYINT,
  DuckDBTypeId.USMALLINT,
  DuckDBTypeId.UINTEGER,
  DuckDBTypeId.UBIGINT,
  DuckDBTypeId.DECIMAL,
  DuckDBTypeId.FLOAT,
  DuckDBTypeId.DOUBLE,
  DuckDBTypeId.DATE,
  DuckDBTypeId.TIME,
  DuckDBTypeId.TIMESTAMP,
  DuckDBTypeId.TIMESTAMP_NS,
  DuckDBTypeId.TIMESTAMP_TZ,
  DuckDBTypeId.BLOB,
]);
