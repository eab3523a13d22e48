// The peer's half of the work: DuckDB reads an NDJSON file of fills, typed by hand, and writes Parquet.
//   node bench/copy.ts FILE.ndjson OUT.parquet [count]
import { DuckDBInstance } from "@duckdb/node-api";
import { tableNamed } from "../src/model/profile/table.ts";

const [file, out, count] = process.argv.slice(2);
const types = {
  uint64: "UBIGINT",
  int64: "BIGINT",
  timestamp: "BIGINT",
  uint32: "UINTEGER",
  exact: "DECIMAL(18,9)",
  double: "DOUBLE",
  string: "VARCHAR",
};
const columns = tableNamed("fills").columns.map(({ name, kind }) => `${name}: '${types[kind]}'`);
const instance = await DuckDBInstance.create(":memory:");
const connection = await instance.connect();
await connection.run(
  `COPY (SELECT * FROM read_json('${file}', format = 'newline_delimited', columns = {${columns.join(", ")}})) TO '${out}' (FORMAT parquet, COMPRESSION zstd)`,
);
if (count !== undefined) {
  const reader = await connection.runAndReadAll(`SELECT count(*) FROM '${out}'`);
  process.stdout.write(`${String(reader.getRows()[0]![0])}\n`);
}
connection.closeSync();
instance.closeSync();
