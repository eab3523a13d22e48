// @module-tag slow
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exportTables } from "../../src/analytics/export/export.ts";
import { ExportSession } from "../../src/analytics/export/export-session.ts";
import { literal, parquetRows } from "../../src/duckdb/sql.ts";
import { tables } from "../../src/model/profile/table.ts";
import { lost, recordStatements } from "../fixtures/analytics/recorded-statements.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { SplitWorld } from "../fixtures/archive/split-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

let world: SplitWorld;
beforeAll(async () => {
  world = await SplitWorld.create();
});
afterAll(() => world[Symbol.asyncDispose]());

// from five symbols on, DuckDB makes a join of IN, which keeps no order
test("books of six symbols balance with a small row group amid their bars", async () => {
  const { archive, run } = world;
  using recorded = recordStatements();
  const { stdout } = await runInside(["reconcile", run, "--archive", archive.dir, "--json"]);
  const [first] = JSON.parse(stdout).runs;
  expect(first.checks.map(({ verdict }: { verdict: string }) => verdict)).toEqual(Array(8).fill("HOLDS"));
  expect(recorded.statements().length).toBeGreaterThan(20);
  expect(lost(recorded.statements())).toEqual([]);
});

test.each(["parquet", "ndjson"] as const)(
  "an export of six symbols as %s keeps the key order",
  async (format) => {
    const { archive, folder, symbols } = world;
    using recorded = recordStatements();
    await using session = await ExportSession.open(archive, {
      ...{ readManifests: () => archive.manifests(), tables, allowIncomplete: false },
      ...{ memoryLimitMb: 512, threads: 2 },
      selection: { filters: {}, symbols, decimals: "exact" },
    });
    const target = { format, out: join(folder, format), force: true, partition: null };
    await exportTables(session, tables, { ...target, outside: archive.dir });
    expect(lost(recorded.statements())).toEqual([]);
    const { connection } = await sharedDuckDB.forJob({
      memoryLimitMb: 256,
      threads: 2,
      tempDirectory: folder,
    });
    for (const { name } of tables) {
      const file = join(folder, format, `${name}.${format}`);
      const rows =
        format === "parquet"
          ? parquetRows([file])
          : `read_ndjson(${literal(file)}, columns = {ts_event: 'BIGINT', seq: 'UBIGINT'})`;
      const disordered = await connection.runAndReadAll(`SELECT count(*) FROM (
      SELECT (ts_event, seq) AS key, lag((ts_event, seq)) OVER () AS before FROM ${rows}) WHERE before > key`);
      expect([name, ...disordered.getRows()[0]!]).toEqual([name, 0n]);
    }
  },
);
