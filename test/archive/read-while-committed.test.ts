import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ndjsonLineSql } from "../../src/analytics/export/export-lines.ts";
import { ExportSession } from "../../src/analytics/export/export-session.ts";
import { openQuery, type Query } from "../../src/analytics/query/query.ts";
import { startWidening } from "../../src/extract/rebuild/widen.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { RebuildWorld, second, third } from "../fixtures/archive/rebuild-world.ts";
import { at, run } from "../fixtures/archive/table-world.ts";

const fills = tableNamed("fills");
let under: RebuildWorld;
beforeEach(async () => {
  under = await RebuildWorld.create();
});
afterEach(() => under[Symbol.asyncDispose]());

async function answer(query: Query, sql: string): Promise<unknown[][]> {
  const rows: unknown[][] = [];
  for await (const batch of (await query.run(sql)).batches()) rows.push(...(batch as unknown[][]));
  return rows;
}

const openExport = () =>
  ExportSession.open(under.archive, {
    readManifests: () => under.archive.manifests(),
    tables: [fills],
    allowIncomplete: false,
    memoryLimitMb: 256,
    threads: 1,
    selection: { filters: {}, decimals: "double" },
  });

async function exportedRows(session: ExportSession): Promise<number> {
  let count = 0;
  for await (const { rows } of session.stream(session.rowsSql(fills))) count += rows;
  return count;
}

describe("a reader", () => {
  const sum = "SELECT sum(price)::VARCHAR FROM fills";

  test("goes on over commits for an hour, and is then told to ask again", async () => {
    await under.archiveFills(run, "0.5");
    await using query = await openQuery(under.archive);
    await using session = await openExport();
    await under.rebuild(run, 1);
    expect((await answer(query, sum)).length).toBe(1);
    expect(await exportedRows(session)).toBe(12);
    const first = session.rowsSql(fills);
    await under.rebuild(run, 2);
    expect((await answer(query, sum)).length).toBe(1);
    expect((await session.firstRow(first)).length).toBeGreaterThan(1);
    await under.rebuild(run, 3, at(2));
    const asksAgain = {
      code: "history_query_failed",
      message: "a job committed a new generation of the run while it was being read",
      place: { instance: run.instanceId, run: run.runId },
    };
    await expect(answer(query, sum)).rejects.toMatchObject(asksAgain);
    await expect(exportedRows(session)).rejects.toMatchObject(asksAgain);
    await expect(session.firstRow(first)).rejects.toMatchObject(asksAgain);
  });

  test("calls it damage where files are gone without a commit", async () => {
    await under.archiveFills(run);
    await using query = await openQuery(under.archive);
    const data = under.archive.layout.dataDir(run);
    for (const name of await readdir(data)) if (name.endsWith(".parquet")) await rm(join(data, name));
    await expect(answer(query, sum)).rejects.toMatchObject({ code: "archive_damaged" });
  });

  test("gets runs in order while only the one in the middle has the new type", async () => {
    for (const of of [run, second, third]) await under.archiveFills(of);
    await startWidening(under.archive, { fills: { price: null } }, () => {});
    await under.rebuild(second, null);
    await using query = await openQuery(under.archive, { threads: 1 });
    const ids = (await answer(query, "SELECT run_id FROM fills")).map(([id]) => String(id));
    expect(ids.length).toBe(36);
    expect(ids).toEqual(ids.toSorted());
  });

  test("of a decimal with over eighteen digits gets the nearest double", async () => {
    const price = "112.96687017";
    await under.archiveFills(run, price);
    await startWidening(under.archive, { fills: { price: null } }, () => {});
    await under.rebuild(run, null);
    await using query = await openQuery(under.archive);
    const where = "WHERE seq = 1";
    expect(await answer(query, `SELECT price FROM fills_f ${where}`)).toEqual([[Number(price)]]);
    await using session = await openExport();
    const [line] = await session.firstRow(`SELECT ${ndjsonLineSql(fills, "double")} FROM fills ${where}`);
    expect(line).toContain(`"price":${price},`);
    const column = fills.columns.findIndex(({ name }) => name === "price");
    expect((await session.firstRow(`${session.rowsSql(fills)} ${where}`))[column]).toBe(Number(price));
  });
});
