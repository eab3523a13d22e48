import { link, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import type { Archive } from "../src/archive/archive.ts";
import { decimalType, parquetType, timestampMax, timestampMin } from "../src/archive/convert-types.ts";
import { identifier, literal } from "../src/archive/sql.ts";
import { canonicalLine, type Row } from "../src/model/line.ts";
import type { RunRef } from "../src/model/source.ts";
import { type Column, type Table, type TableName, tableNamed, tableNames } from "../src/model/table.ts";
import { buildArchive, firstTs } from "./query-archive.ts";

/** Ids that readers like to turn into numbers, dates, folders or other letters. In the order of the archive. */
export const oddRuns: readonly RunRef[] = [
  { instanceId: "12", runId: "2026-01-01" },
  { instanceId: "a/b", runId: "12" },
  { instanceId: "Ünï", runId: "a/b" },
];

export const rowsPerRun = 5;

const strings = [
  "",
  'q"uo\\te,\r\nline',
  "Ünï €😀 longer than twelve bytes, and than forty-eight of them too",
  "twelve bytes",
  "\u0001tab\tdel\u007f",
];
const doubles = [Number.NaN, -0, Number.NEGATIVE_INFINITY, 5e-324, 1e21];
const signed = [-9_223_372_036_854_775_808n, 9_223_372_036_854_775_807n, 0n, -1n, 9_007_199_254_740_993n];
const unsigned = [18_446_744_073_709_551_615n, 0n, 9_007_199_254_740_993n, 1n, 9_223_372_036_854_775_808n];
const times = [timestampMin, -1n, 999_999_999n, timestampMax, firstTs];

/** Row i of a run's table: at each place the worst that a column can hold. */
export function extremeRow(archive: Archive, table: Table, run: RunRef, i: number): Row {
  const row: Row = {};
  for (const [index, column] of table.columns.entries()) {
    row[column.name] = value(column, archive.exactTypes(table.name), (i + index) % rowsPerRun);
  }
  const ts_event = firstTs + BigInt(i * 7);
  Object.assign(row, { run_id: run.runId, instance_id: run.instanceId, seq: BigInt(i), ts_event });
  if (table.filters.includes("symbol")) row.symbol = i % 2 === 0 ? "A" : "B";
  return row;
}

function value(column: Column, types: Readonly<Record<string, string>>, i: number): Row[string] {
  switch (column.kind) {
    case "uint64":
      return unsigned[i]!;
    case "int64":
      return signed[i]!;
    case "uint32":
      return [0, 4_294_967_295, 1, 2, 3][i]!;
    case "timestamp":
      return times[i]!;
    case "double":
      return doubles[i]!;
    case "string":
      return strings[i]!;
    case "exact": {
      const { precision, scale } = decimalType(types[column.name]!);
      const most = `${"9".repeat(precision - scale)}.${"9".repeat(scale)}`;
      return [most, `-${most}`, "", `-0.${"0".repeat(scale - 1)}1`, "1.5"][i]!;
    }
  }
}

/** The canonical lines of a table of some runs, in key order, made without any SQL. */
export function extremeLines(archive: Archive, name: TableName, runs = oddRuns): string[] {
  const table = tableNamed(name);
  return runs.flatMap((run) =>
    Array.from({ length: rowsPerRun }, (_, i) => canonicalLine(table, extremeRow(archive, table, run, i))),
  );
}

/** An archive of the odd runs with the extreme rows in every table; two files a table of the first run. */
export async function buildExtremeArchive(): ReturnType<typeof buildArchive> {
  const state = { state: "COMPLETE" as const, rows: rowsPerRun };
  const tables = Object.fromEntries(tableNames.map((name) => [name, state]));
  const built = await buildArchive(oddRuns.map((run) => ({ ...run, tables })));
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  for (const run of oddRuns) {
    for (const name of tableNames) {
      const table = tableNamed(name);
      const types = built.archive.exactTypes(name);
      const rows = Array.from({ length: rowsPerRun }, (_, i) => {
        const row = extremeRow(built.archive, table, run, i);
        return `(${table.columns.map((column) => sqlValue(column, row[column.name]!, parquetType(column, types))).join(", ")})`;
      });
      const names = table.columns.map((column) => identifier(column.name)).join(", ");
      const file = join(built.archive.layout.dataDir(run), `${name}-all-g1.parquet`);
      await connection.run(
        `COPY (SELECT * FROM (VALUES ${rows.join(", ")}) t(${names})) TO ${literal(file)} (FORMAT parquet, DICTIONARY_SIZE_LIMIT 0)`,
      );
    }
  }
  connection.closeSync();
  instance.closeSync();
  return built;
}

function sqlValue({ kind }: Column, value: Row[string], type: string): string {
  if (kind === "timestamp") return `make_timestamp_ns(${value}::BIGINT)`;
  if (kind === "exact" && value === "") return `NULL::${type}`;
  return `CAST(${literal(Object.is(value, -0) ? "-0" : String(value))} AS ${type})`;
}

/** Links the committed Parquet files where people glob for them, as a commit does. */
export async function linkTables(archive: Archive): Promise<void> {
  for (const run of oddRuns) {
    for (const name of tableNames) {
      const folder = archive.layout.tableDir(name, run);
      await mkdir(folder, { recursive: true });
      await link(join(archive.layout.dataDir(run), `${name}-all-g1.parquet`), join(folder, "all.parquet"));
    }
  }
}
