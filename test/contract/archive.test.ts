// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import { archiveRun } from "../../src/extract/run/archive-run.ts";
import { openSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { historySourceContract } from "../fixtures/source/history-source-contract.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

const run = { instanceId: "alpha-1", runId: "2022-01-01-001" };
let folder: string;
let world: Simulator;
let archive: Archive;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "archive-contract-"));
  world = await openSimulator({
    cacheDir: join(folder, "worlds"),
    runs: 1,
    rows: 4_000,
    clock: () => 2n ** 62n,
  });
  archive = await openArchive(join(folder, "archive"), { create: true });
  await archiveRun({
    source: world,
    archive,
    run,
    clock: () => 2n ** 62n,
    retry: quickRetry(),
    signal: new AbortController().signal,
    tool: "test",
    duckdb: sharedDuckDB,
    settings: { segmentBytes: 50_000, sliceRows: 1_000 },
  });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

historySourceContract("an archive", async () => {
  const source = openArchiveSource(archive);
  return { source, truth: world, run, [Symbol.asyncDispose]: () => source[Symbol.asyncDispose]() };
});
