// The peer's whole work: DuckDB copies Parquet files into another format, with its own defaults.
//   node bench/copy-parquet.ts 'FILES.parquet' OUT parquet|csv|json|duckdb
import { DuckDBInstance } from "@duckdb/node-api";

const [files, out, format] = process.argv.slice(2);
const instance = await DuckDBInstance.create(":memory:");
const connection = await instance.connect();
if (format === "duckdb") {
  await connection.run(`ATTACH '${out}' AS o; CREATE TABLE o.fills AS FROM '${files}'; DETACH o`);
} else {
  const options = format === "parquet" ? "FORMAT parquet, COMPRESSION zstd" : `FORMAT ${format}`;
  await connection.run(`COPY (FROM '${files}') TO '${out}' (${options})`);
}
connection.closeSync();
instance.closeSync();
