import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parquetForms } from "../../src/analytics/export/parquet-forms.ts";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import type { HistorySource } from "../../src/model/source.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { archiveWorld, smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { requires } from "../fixtures/command/requirement.ts";
import { rawGet } from "../fixtures/served/serve-raw-client.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const fills = smallWorld(60).get("fills")!;
const orders = smallWorld(8).get("orders")!;

let folder: string;
let source: HistorySource;
let server: Served;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-zstd-"));
  const world = new Map([
    ["fills", fills],
    ["orders", orders],
  ] as const);
  const { archive, manifest } = await archiveWorld(
    join(folder, "archive"),
    new ArraySource(worldRun, new Map(world)),
    { tables: ["fills", "orders"], settings: { segmentBytes: 8000, sliceRows: 100 } },
  );
  expect(manifest.tables.fills!.proven!.segments.length).toBeGreaterThan(2);
  source = openArchiveSource(archive, { forms: parquetForms });
  server = await serve({ source, host: "127.0.0.1", port: 0, compress: true });
});
afterAll(async () => {
  await server.close();
  await source[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

describe.skipIf(!requires("zstd"))("the zstd program reads an answer in zstd", () => {
  test.each([
    ["of several segments", "fills", "", fills],
    ["of a stored frame", "orders", "", orders],
    ["of a part of a segment", "orders", "&limit=3", orders.slice(0, 3)],
    ["of filtered rows", "orders", "&symbol=A", orders.filter(({ symbol }) => symbol === "A")],
  ] as const)("%s", async (_what, table, query, wanted) => {
    const { instanceId, runId } = worldRun;
    const url = `${server.url}/history/${table}?instance=${instanceId}&run_id=${runId}${query}`;
    const answer = await rawGet(url, { "accept-encoding": "zstd" });
    const { stdout, status } = spawnSync("zstd", ["-d", "-c"], { input: answer.body });
    expect([status, stdout.toString()]).toEqual([0, wanted.map(({ line }) => `${line}\n`).join("")]);
  });
});
