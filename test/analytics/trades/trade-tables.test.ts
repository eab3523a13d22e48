// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openViews } from "../../../src/analytics/query/open-views.ts";
import { openQuery, type Query } from "../../../src/analytics/query/query.ts";
import { tradeTableNames } from "../../../src/analytics/trades/trade-tables.ts";
import { copyTradeTables, writeTradeTables } from "../../../src/analytics/trades/write-trade-tables.ts";
import { type Archive, openArchive } from "../../../src/archive/archive.ts";
import { archiveRun } from "../../../src/extract/run/archive-run.ts";
import { wallClock } from "../../../src/model/time.ts";
import { openSimulator } from "../../../src/simulator/simulator.ts";
import { sharedDuckDB } from "../../fixtures/archive/shared-duckdb.ts";
import { quickRetry } from "../../fixtures/source/quick-retry.ts";

let folder: string;
let archive: Archive;
let query: Query;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-trade-tables-"));
  const source = await openSimulator({ runs: 2, rows: 8_000, failed: 0, cacheDir: join(folder, "worlds") });
  archive = await openArchive(join(folder, "archive"), { create: true });
  for (const { instanceId, runIds } of await source.instances()) {
    for (const runId of runIds) {
      await archiveRun({
        source,
        archive,
        run: { instanceId, runId },
        settings: {},
        clock: wallClock,
        retry: quickRetry(),
        signal: new AbortController().signal,
        tool: "test",
        duckdb: sharedDuckDB,
      });
    }
  }
  query = await openQuery(archive);
}, 60_000);

afterAll(async () => {
  await query[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

async function rowsOf(sql: string, from = query): Promise<unknown[][]> {
  const rows: unknown[][] = [];
  for await (const batch of (await from.run(sql)).batches()) {
    for (const row of batch)
      rows.push(row.map((value) => (typeof value === "bigint" ? value : String(value))));
  }
  return rows;
}

describe("tables of trades in a query", () => {
  test("have the profit of the run's equity, whichever is added up", async () => {
    const change = await rowsOf(
      `SELECT instance_id, run_id, CAST(last(equity ORDER BY ts_event, seq) - first(equity ORDER BY ts_event, seq) AS DECIMAL(38,18))
       FROM equity GROUP BY ALL ORDER BY ALL`,
    );
    expect(change).toHaveLength(2);
    for (const table of ["round_trips", "positions"]) {
      const sums = `SELECT instance_id, run_id, sum(net_pnl) FROM ${table} GROUP BY ALL ORDER BY ALL`;
      expect(await rowsOf(sums), table).toEqual(change);
    }
    // what is open is in no match
    const [[matched], [quantity]] = [
      await rowsOf("SELECT sum(quantity) FROM matches"),
      await rowsOf(
        `SELECT sum((f.filled - abs(p.quantity)) / 2) FROM positions p
         JOIN (SELECT instance_id, run_id, sum(quantity) AS filled FROM fills GROUP BY ALL) f USING (instance_id, run_id)`,
      ),
    ];
    expect(Number(matched![0])).toBeCloseTo(Number(quantity![0]), 6);
  });

  test("have keys that are those of fills, and leave the archive's own tables as they are", async () => {
    const counts = "SELECT (SELECT count(*) FROM fills), (SELECT count(DISTINCT run_id) FROM fills)";
    await using fresh = await openQuery(archive);
    const before = await rowsOf(counts, fresh);
    const joined = await rowsOf(
      `SELECT count(*) - (SELECT count(*) FROM matches) FROM matches m
       JOIN fills e ON e.instance_id = m.instance_id AND e.run_id = m.run_id AND e.seq = m.entry_seq AND e.ts_event = m.entry_time AND e.price = m.entry_price
       JOIN fills x ON x.instance_id = m.instance_id AND x.run_id = m.run_id AND x.seq = m.exit_seq AND x.ts_event = m.exit_time AND x.price = m.exit_price`,
      fresh,
    );
    expect(joined).toEqual([[0n]]);
    expect(await rowsOf(counts, fresh)).toEqual(before);
  });

  test("are computed only for a statement that reads them", async () => {
    await using fresh = await openQuery(archive, {
      instruments: {
        file: "i.yaml",
        entries: [{ symbol: "*", venue: "*", multiplier: "1", kind: "linear", bars: { venue: "none" } }],
      },
    });
    // what cannot be resolved is told once trades are asked for
    const own = "WITH positions AS (SELECT 1 AS one) SELECT one FROM positions";
    expect(await rowsOf(own, fresh)).toEqual([["1"]]);
    await expect(
      rowsOf("WITH matches AS (SELECT * FROM matches) SELECT count(*) FROM matches", fresh),
    ).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("the run does not have the bars"),
    });
  });

  test("are copied into an attached database, where they need nothing else", async () => {
    await using views = await openViews(archive, {
      readManifests: () => archive.manifests(),
      allowIncomplete: false,
      memoryLimitMb: 256,
      threads: 2,
    });
    await writeTradeTables(views, archive.exactTypes, tradeTableNames, { instruments: null });
    const file = join(folder, "exported.duckdb");
    await views.connection.run(`ATTACH '${file}' AS exported`);
    await copyTradeTables(views.connection, tradeTableNames, "exported");
    await views.connection.run("DETACH exported");
    const other = await DuckDBInstance.create(file);
    const connection = await other.connect();
    const counts = tradeTableNames.map((name) => `(SELECT count(*) FROM ${name})`).join(", ");
    const copied = (
      await connection.runAndReadAll(`SELECT ${counts}, (SELECT min(run_id) FROM matches)`)
    ).getRows();
    connection.closeSync();
    other.closeSync();
    expect([copied[0]!]).toEqual(await rowsOf(`SELECT ${counts}, (SELECT min(run_id) FROM matches)`));
    expect(Number(copied[0]![1])).toBeGreaterThan(10);
  });

  test("have exact types and times in nanoseconds", async () => {
    const types = await rowsOf(
      "SELECT column_name, column_type FROM (DESCRIBE SELECT entry_time, net_pnl, fees, entry_price, is_open, run_id FROM round_trips)",
    );
    expect(Object.fromEntries(types)).toEqual({
      entry_time: "TIMESTAMP_NS",
      net_pnl: "DECIMAL(38,18)",
      fees: "DECIMAL(38,9)",
      entry_price: "DECIMAL(18,9)",
      is_open: "BOOLEAN",
      run_id: "VARCHAR",
    });
  });
});
