// Prints the seconds that DuckDB takes to write, to /dev/null, the canonical lines of some fills, with the
// memory and threads that the server gives it; five times in one process, as a server asks more than once.
//   node bench/copy-lines.ts PARQUET COLUMN VALUE
import { DuckDBInstance } from "@duckdb/node-api";
import { canonicalLineSql } from "../src/duckdb/canonical-sql.ts";
import { identifier, literal } from "../src/duckdb/sql.ts";
import { tableNamed } from "../src/model/profile/table.ts";

const [files, column, value] = process.argv.slice(2) as [string, string, string];
const instance = await DuckDBInstance.create(":memory:", { memory_limit: "256MiB", threads: "2" });
const connection = await instance.connect();
const rows = `SELECT * FROM read_parquet(${literal(files)}) WHERE ${identifier(column)} = ${literal(value)}`;
const lines = `SELECT ${canonicalLineSql(tableNamed("fills"))} AS line FROM (${rows})`;
for (let round = 0; round < 5; round++) {
  const began = performance.now();
  await connection.run(`COPY (${lines}) TO '/dev/null' (FORMAT csv, HEADER false, QUOTE '', DELIMITER '\t')`);
  process.stdout.write(`${(performance.now() - began) / 1000}\n`);
}
