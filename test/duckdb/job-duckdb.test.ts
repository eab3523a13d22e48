import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { JobDuckDB } from "../../src/duckdb/job-duckdb.ts";
import type { OpenDuckDB } from "../../src/duckdb/open-duckdb.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-job-duckdb-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const settings = ["temp_directory", "memory_limit", "threads", "enable_external_file_cache"];

async function settingsOf({ connection }: OpenDuckDB): Promise<string[]> {
  const asked = settings.map((name) => `current_setting('${name}')::VARCHAR`).join(", ");
  return (await connection.runAndReadAll(`SELECT ${asked}`)).getRowsJson()[0] as string[];
}

test("one job after another has the same DuckDB, with limits and a folder of its own", async () => {
  await using jobs = new JobDuckDB();
  const first = await jobs.forJob({
    memoryLimitMb: 100,
    threads: 2,
    tempDirectory: join(folder, "it's one"),
  });
  expect(await settingsOf(first)).toEqual([join(folder, "it's one"), "100.0 MiB", "2", "false"]);
  const second = await jobs.forJob({ memoryLimitMb: 200, threads: 1, tempDirectory: join(folder, "two") });
  expect(second).toBe(first);
  expect(await settingsOf(second)).toEqual([join(folder, "two"), "200.0 MiB", "1", "false"]);
  expect((await readdir(folder)).sort()).toEqual(["it's one", "two"]);
});

test("one that has spilled is replaced, so that the next job spills to its own folder", async () => {
  await using jobs = new JobDuckDB();
  const spill =
    "CREATE TEMP TABLE t AS SELECT hash(i)::VARCHAR || repeat('x', 100) AS s FROM range(400000) r(i)";
  const first = await jobs.forJob({ memoryLimitMb: 30, threads: 1, tempDirectory: join(folder, "one") });
  await first.connection.run(spill);
  expect(await readdir(join(folder, "one"))).not.toEqual([]);
  const second = await jobs.forJob({ memoryLimitMb: 30, threads: 1, tempDirectory: join(folder, "two") });
  expect(second).not.toBe(first);
  await second.connection.run(spill);
  expect(await readdir(join(folder, "two"))).not.toEqual([]);
});
