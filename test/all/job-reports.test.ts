import { mkdir, mkdtemp, readFile, rm, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exit } from "../../src/model/error.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { JobWorld } from "../fixtures/pipeline/job-world.ts";

const run = "alpha-1/2022-01-01-001";
const page = join("alpha-1", "2022-01-01-001.html");

let cacheDir: string;
let served: Served;
let source: Awaited<ReturnType<typeof openSimulator>>;
beforeAll(async () => {
  cacheDir = await mkdtemp(join(tmpdir(), "report-worlds-"));
  source = await openSimulator({ runs: 1, failed: 0, rows: 600, cacheDir });
  served = await serve({ source, host: "127.0.0.1", port: 0, onError: () => {} });
});
afterAll(async () => {
  await served.close();
  await source[Symbol.asyncDispose]();
  await rm(cacheDir, { recursive: true, force: true });
});

const jobOf = (world: JobWorld, after: object) =>
  world.write({
    gateway: { url: served.url },
    tables: "all",
    runs: { instances: ["alpha-1"] },
    after: { verify: "nothing", ...after },
  });

test("a committed run gets its page, once", async () => {
  await using world = await JobWorld.open(1, 1);
  const file = await jobOf(world, { reports: { out: "reports" } });
  const first = await world.execute(file);
  expect(first).toMatchObject({ exit: exit.done, after: [{ what: "report", out: run, result: "done" }] });
  const text = await readFile(join(world.folder, "reports", page), "utf8");
  expect(text).toContain(run);
  expect(text).toContain("by test.");
  expect(await world.execute(file)).toMatchObject({ exit: exit.done, after: [] });
});

// a run that is committed is not worked on again: its page would never have come
test("a page that could not be written is written by the next execution, and its trouble is over", async () => {
  await using world = await JobWorld.open(1, 1);
  const file = await jobOf(world, { reports: { out: "reports" } });
  const inTheWay = join(world.folder, "reports", page);
  await mkdir(inTheWay, { recursive: true });
  const failed = await world.execute(file);
  expect(failed.after).toMatchObject([{ what: "report", result: "failed" }]);
  expect(failed.result.troubles.map(({ key }) => key)).toContain(`after:report:${run}`);
  await rmdir(inTheWay);
  const next = await world.execute(file);
  expect(next).toMatchObject({ exit: exit.done, after: [{ what: "report", out: run, result: "done" }] });
  expect(next.result.troubles.filter(({ mended }) => mended === null)).toEqual([]);
});

test("an export with analytics answers as a query does, and is made once", async () => {
  await using world = await JobWorld.open(1, 1);
  const exports = [{ tables: ["fills"], out: "run.duckdb", with_analytics: true }];
  const file = await jobOf(world, { exports });
  expect(await world.execute(file)).toMatchObject({ exit: exit.done, after: [{ result: "done" }] });
  expect((await world.execute(file)).after).toMatchObject([{ result: "unchanged" }]);
  const database = await DuckDBInstance.create(join(world.folder, "run.duckdb"), {
    access_mode: "READ_ONLY",
  });
  const connection = await database.connect();
  const answer = await connection.runAndReadAll("SELECT count(*) > 0 FROM round_trips");
  expect(answer.getRows()).toEqual([[true]]);
  connection.closeSync();
  database.closeSync();
});
