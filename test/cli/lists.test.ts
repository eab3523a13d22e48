// @module-tag slow
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { readSources } from "../../src/archive/sources.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { RequestLogEntry } from "../../src/serve/monitoring/request-log.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { ManyRuns } from "../fixtures/source/many-runs.ts";
import { someOf } from "../fixtures/trials/cases.ts";

let folder: string;
let dir: string;
let count = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-lists-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeEach(() => {
  dir = join(folder, `archive-${++count}`);
});

/** A served world, with a log of what it is asked. */
class World implements AsyncDisposable {
  readonly runs: ManyRuns;
  readonly log: RequestLogEntry[] = [];
  #server!: Served;

  private constructor(runs: ManyRuns) {
    this.runs = runs;
  }

  static async open(instances: number, runs: number, literal = false): Promise<World> {
    const world = new World(new ManyRuns(instances, runs));
    world.#server = await serve({
      source: world.runs,
      host: "127.0.0.1",
      port: 0,
      literal,
      onRequest: (entry) => world.log.push(entry),
    });
    return world;
  }

  /** Runs `archive` on it, fills alone; what it was asked meanwhile is in the answer, by path. */
  async archive(...args: string[]) {
    this.log.length = 0;
    const where = ["--gateway", this.#server.url, "--archive", dir, "--retries", "0"];
    const transport = args.includes("--transport") ? [] : ["--transport", "rest"];
    const { status, stdout, stderr } = await runInside([
      ...["archive", "--tables", "fills", "--json", ...where, ...transport],
      ...args,
    ]);
    const body = JSON.parse(stdout) as {
      lists: {
        instanceId: string | null;
        runIds: string[];
        text: string;
        code: string | null;
        exit: number;
      }[];
      runs: {
        instanceId: string;
        runId: string;
        state: string;
        changed: boolean;
        error?: { code: string };
      }[];
    };
    const asked: Record<string, number> = {};
    for (const { path } of this.log) {
      const name = path.split("/").slice(-2).join("/");
      asked[name] = (asked[name] ?? 0) + 1;
    }
    return { status, stderr, asked, ...body };
  }

  get url(): string {
    return this.#server.url;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.close();
  }
}

const finishedAll = ["--all", "--finished"];

describe("requests", () => {
  test("of a no-op over 15 finished runs in 5 instances are six: one for the instances and one for each list", async () => {
    await using world = await World.open(5, 3);
    const first = await world.archive(...finishedAll);
    expect(first).toMatchObject({ status: 0, lists: [] });
    expect(first.runs).toHaveLength(15);
    // each list once, and once more behind the fetches, for many runs at once
    expect(first.asked["history/instances"]).toBe(1);
    expect(first.asked["history/runs"]).toBeLessThanOrEqual(5 + 10);
    const second = await world.archive(...finishedAll);
    expect(second).toMatchObject({ status: 0, asked: { "history/instances": 1, "history/runs": 5 } });
    expect(world.log).toHaveLength(6);
    expect(second.runs.every(({ changed }) => !changed)).toBe(true);

    // the same runs without versions: their facts tell
    for (const source of world.runs.sources) {
      source.entry = { ...source.entry, storageVersion: undefined };
    }
    const third = await world.archive(...finishedAll);
    expect(third.asked).toEqual({ "history/instances": 1, "history/runs": 5, "history/storage": 15 });
    expect(third.status).toBe(0);
  });

  test("for documents are none for what the lists brought", async () => {
    await using world = await World.open(1, 2);
    expect(await world.archive("i1/r1")).toMatchObject({
      status: 0,
      // once ahead of the fetch, once behind it
      asked: { "history/runs": 2, "history/summary": 1 },
    });
    const archive = await openArchive(dir);
    const run = { instanceId: "i1", runId: "r1" };
    const { documents } = (await archive.manifest(run))!;
    const stored = await readFile(join(archive.layout.dataDir(run), documents.run!.file), "utf8");
    expect(JSON.parse(stored)).toMatchObject({ run_id: "r1", instance_id: "i1", status: "FINISHED" });
  });

  test("for summaries are two a fetched run where there are no lists, and one where nothing changed", async () => {
    await using world = await World.open(1, 3, true);
    for (const source of world.runs.sources) source.manners = { literal: true };
    const first = await world.archive(...finishedAll);
    expect(first.status).toBe(0);
    expect(first.asked).toMatchObject({ "history/instances": 1, "history/summary": 6 });
    const second = await world.archive(...finishedAll);
    expect(second.asked).toMatchObject({ "history/instances": 1, "history/summary": 3 });
    expect(second.runs.map(({ state }) => state)).toEqual(["COMPLETE", "COMPLETE", "COMPLETE"]);
  });
});

describe("a status word that nobody knows", () => {
  test("is told with the run and is exit 4, once the other runs are archived", async () => {
    await using world = await World.open(1, 3);
    const odd = world.runs.source("i1", "r2");
    odd.entry = { ...odd.entry, status: "HALTED", ended: undefined, final: false };
    const { status, lists, runs, stderr } = await world.archive(...finishedAll);
    expect(status).toBe(4);
    expect(runs.map(({ runId }) => runId)).toEqual(["r1", "r3"]);
    expect(lists).toMatchObject([{ instanceId: "i1", runIds: ["r2"], code: "unverified", exit: 4 }]);
    expect(stderr).toContain('\\"HALTED\\"');
    expect(stderr).toContain("--finished-status HALTED");
    const plan = await world.archive(...finishedAll, "--dry-run");
    expect(plan).toMatchObject({ status: 4, lists: [{ runIds: ["r2"] }] });
  });

  test("of many runs is told of ten, with how many more there are", async () => {
    await using world = await World.open(1, 30);
    for (const source of world.runs.sources)
      source.entry = { ...source.entry, status: "HALTED", ended: undefined, final: false };
    const { status, lists, stderr } = await world.archive(...finishedAll);
    expect(status).toBe(4);
    expect(lists.map(({ runIds }) => runIds.length)).toEqual([...Array(10).fill(1), 0]);
    expect(lists[10]).toMatchObject({ instanceId: "i1", code: "unverified", count: 20, exit: 4 });
    expect(stderr.match(/"code":"unverified"/g)).toHaveLength(11);
  });

  test("given as --finished-status is an end, in this job and, for this source, in later ones", async () => {
    await using world = await World.open(1, 3);
    for (const [runId, status] of [
      ["r2", "STOPPED"],
      ["r3", "completed"],
    ] as const) {
      const odd = world.runs.source("i1", runId);
      odd.entry = { ...odd.entry, status, ended: undefined };
    }
    for (const source of world.runs.sources) source.entry = { ...source.entry, final: false };
    const unknown = await world.archive(...finishedAll);
    expect(unknown.status).toBe(4);
    expect(unknown.runs.map(({ runId, state }) => `${runId} ${state}`)).toEqual(["r1 COMPLETE"]);
    const told = await world.archive(...finishedAll, "--finished-status", "COMPLETED,STOPPED");
    expect(told).toMatchObject({ status: 0, lists: [] });
    expect(told.runs.map(({ state }) => state)).toEqual(["COMPLETE", "COMPLETE", "COMPLETE"]);
    expect(await world.archive(...finishedAll)).toMatchObject({ status: 0, lists: [] });
    const kept = await readSources(await openArchive(dir));
    expect(kept).toMatchObject([{ finishedStatus: ["COMPLETED", "STOPPED"] }]);
  });

  test("is kept for an archive that this very job makes, but for no plan", async () => {
    await using world = await World.open(1, 1);
    const odd = world.runs.source("i1", "r1");
    odd.entry = { ...odd.entry, status: "DONE", ended: undefined, final: false };
    const given = [...finishedAll, "--finished-status", "DONE"];
    expect(await world.archive(...given, "--dry-run")).toMatchObject({ status: 0, runs: [{ runId: "r1" }] });
    await expect(openArchive(dir)).rejects.toMatchObject({ code: "not_an_archive" });
    expect(await world.archive(...given)).toMatchObject({ status: 0, runs: [{ state: "COMPLETE" }] });
    expect(await world.archive(...finishedAll)).toMatchObject({ status: 0, runs: [{ changed: false }] });
  });

  test("with an end in the past is an end, with a note", async () => {
    await using world = await World.open(1, 2);
    for (const source of world.runs.sources) source.entry = { ...source.entry, status: "DONE", final: false };
    const { status, lists, runs } = await world.archive(...finishedAll);
    expect({ status, runs: runs.length }).toEqual({ status: 0, runs: 2 });
    expect(lists).toMatchObject([{ runIds: ["r1", "r2"], code: null, exit: 0 }]);
  });

  test("of a run that was named is a note beside what was archived", async () => {
    await using world = await World.open(1, 2);
    const odd = world.runs.source("i1", "r2");
    odd.entry = { ...odd.entry, status: "HALTED", ended: undefined, final: false };
    const { status, lists, runs } = await world.archive("i1/r2");
    expect({ status, states: runs.map(({ state }) => state) }).toEqual({ status: 0, states: ["OPEN"] });
    expect(lists).toMatchObject([{ runIds: ["r2"], exit: 0 }]);
  });

  test("cannot contain the status of a run that is still running", async () => {
    await using world = await World.open(1, 1);
    const args = ["archive", "--gateway", world.url, "--archive", dir, ...finishedAll];
    const refused = await runInside([...args, "--finished-status", "STOPPED,Running"]);
    expect(refused.status).toBe(2);
    expect(refused.stderr).toContain(
      "--finished-status cannot contain Running, the status of a run that is still running",
    );
    expect((await runInside([...args, "--finished-status", "A,,B"])).status).toBe(2);
  });
});

describe("what fails of one instance", () => {
  test("costs that alone, and leads to its exit status", async () => {
    await using world = await World.open(3, 2);
    world.runs.broken.set("i2", new RunvaultError("history_query_failed", "the store broke"));
    const { status, runs, lists } = await world.archive(...finishedAll);
    expect(status).toBe(3);
    expect(runs.map(({ instanceId, state }) => `${instanceId} ${state}`)).toEqual([
      "i1 COMPLETE",
      "i1 COMPLETE",
      "i3 COMPLETE",
      "i3 COMPLETE",
    ]);
    expect(lists).toMatchObject([{ instanceId: "i2", code: "history_query_failed", exit: 3 }]);
    // what is archived of it is not taken for gone
    world.runs.broken.clear();
    expect((await world.archive(...finishedAll)).status).toBe(0);
    world.runs.broken.set("i2", new RunvaultError("permission_denied", "not yours"));
    expect((await world.archive(...finishedAll)).lists).toMatchObject([{ code: "permission_denied" }]);
  });

  test("and is named costs that alone, too, as does an instance that is not there", async () => {
    await using world = await World.open(2, 1);
    const { status, runs, lists } = await world.archive("i9", "i2", "--finished");
    expect(status).toBe(9);
    expect(runs).toMatchObject([{ instanceId: "i2", state: "COMPLETE" }]);
    expect(lists).toMatchObject([{ instanceId: "i9", code: "instance_not_found" }]);
  });

  test("is told of a gateway that is listed, which is not empty for it", async () => {
    await using world = await World.open(2, 1);
    world.runs.broken.set("i2", new RunvaultError("permission_denied", "not yours"));
    const { status, stdout, stderr } = await runInside(["runs", "--gateway", world.url, "--retries", "0"]);
    expect(status).toBe(9);
    expect(stdout).toContain("i1/r1");
    expect(stderr).toContain("permission_denied");
  });
});

describe("a run that the list of runs lacks", () => {
  test("and the instances name is archived all the same, with a note", async () => {
    await using world = await World.open(1, 4);
    world.runs.unlisted.add(world.runs.source("i1", "r1"));
    const { status, runs, lists } = await world.archive(...finishedAll);
    expect(status).toBe(0);
    expect(runs.map(({ runId }) => runId).sort()).toEqual(["r1", "r2", "r3", "r4"]);
    expect(lists).toMatchObject([{ runIds: ["r1"], code: null }]);
  });

  test("and is archived COMPLETE is a note, its instance gone or not", async () => {
    await using world = await World.open(2, 2);
    expect((await world.archive(...finishedAll)).status).toBe(0);
    world.runs.gone.add(world.runs.source("i1", "r1"));
    const some = await world.archive(...finishedAll);
    expect(some).toMatchObject({ status: 0, lists: [{ instanceId: "i1", runIds: ["r1"], exit: 0 }] });
    expect(some.runs).toHaveLength(3);
    for (const source of world.runs.sources) {
      if (source.run.instanceId === "i1") world.runs.gone.add(source);
    }
    const whole = await world.archive(...finishedAll);
    expect(whole).toMatchObject({ status: 0, lists: [{ instanceId: "i1", runIds: ["r1", "r2"], exit: 0 }] });
    expect(whole.asked).toEqual({ "history/instances": 1, "history/runs": 1 });
    // asked for by its name, which is no misspelling
    expect(await world.archive("i1", "--finished")).toMatchObject({ status: 0, runs: [] });
  });

  test("and is unproven here is tried, and exit 4", async () => {
    await using world = await World.open(1, 3);
    const odd = world.runs.source("i1", "r2");
    odd.entry = { ...odd.entry, status: "RUNNING", ended: undefined, final: false };
    expect(await world.archive("i1/r2")).toMatchObject({ status: 0, runs: [{ state: "OPEN" }] });
    world.runs.gone.add(odd);
    const { status, runs } = await world.archive(...finishedAll);
    expect(status).toBe(4);
    expect(runs.find(({ runId }) => runId === "r2")).toMatchObject({
      tables: { fills: { error: { code: "incomplete" } } },
    });
    expect(runs.filter(({ state }) => state === "COMPLETE")).toHaveLength(2);
  });
});

describe("a run that its gateway does not know any more and of which Parquet is lost", () => {
  /** Removes files of a kind from what is committed of a run. */
  async function lose(instanceId: string, runId: string, ending: string): Promise<void> {
    const data = (await openArchive(dir)).layout.dataDir({ instanceId, runId });
    for (const name of await readdir(data)) if (name.endsWith(ending)) await rm(join(data, name));
  }

  test.each(someOf([["i1/r1"], ["i1/r1", "--close"], finishedAll, ["i1", "--finished"]], 2))(
    "is mended by `archive %s %s`, and exit 5 once segments are lost",
    async (...args) => {
      await using world = await World.open(2, 2);
      await world.archive(...finishedAll);
      world.runs.gone.add(world.runs.source("i1", "r1"));
      const whole = await world.archive(...args);
      await lose("i1", "r1", ".parquet");
      const { status, runs } = await world.archive(...args);
      expect(status).toBe(0);
      expect(runs.find(({ runId, instanceId }) => `${instanceId}/${runId}` === "i1/r1")).toMatchObject({
        state: "COMPLETE",
        changed: true,
      });
      const read = ["query", "--archive", dir, "-f", "csv", "SELECT count(*) AS n FROM fills"];
      expect(await runInside(read)).toMatchObject({ status: 0 });
      // nothing is damaged any more, and so nothing more is asked
      expect(await world.archive(...args)).toMatchObject({ status: 0, asked: whole.asked });
      await lose("i1", "r1", ".zst");
      const damaged = await world.archive(...args);
      expect(damaged.status).toBe(5);
      expect(damaged.runs.filter(({ error }) => error?.code === "archive_damaged")).toHaveLength(1);
      expect(damaged.stderr).toContain("Restore the files from a backup");
    },
  );
});

describe("a run that is named and that its gateway does not know any more", () => {
  test("stays COMPLETE with exit 0, and the runs named with it are archived", async () => {
    await using world = await World.open(1, 2);
    await world.archive("i1/r1");
    world.runs.gone.add(world.runs.source("i1", "r1"));
    const { status, runs } = await world.archive("i1/r1", "i1/r2");
    expect(status).toBe(0);
    expect(runs).toMatchObject([
      { runId: "r1", state: "COMPLETE", changed: false },
      { runId: "r2", state: "COMPLETE", changed: true },
    ]);
  });

  test("is exit 4 where more of it was to come, and 0 once it is closed", async () => {
    await using world = await World.open(1, 2);
    const odd = world.runs.source("i1", "r2");
    odd.entry = { ...odd.entry, status: "RUNNING", ended: undefined, final: false };
    await world.archive("i1/r2");
    world.runs.gone.add(odd);
    expect(await world.archive("i1/r2")).toMatchObject({ status: 4, runs: [{ state: "INCOMPLETE" }] });
    expect(await world.archive("i1/r2", "--close")).toMatchObject({ status: 0, runs: [{ state: "OPEN" }] });
    expect(await world.archive("i1/r2")).toMatchObject({ status: 0, runs: [{ state: "OPEN" }] });
  });
});

test("both transports' lists are asked where there are two, and agree", async () => {
  await using world = await World.open(2, 3);
  expect((await world.archive(...finishedAll)).status).toBe(0);
  const { status, lists, asked } = await world.archive(...finishedAll, "--transport", "auto");
  expect({ status, lists }).toEqual({ status: 0, lists: [] });
  expect(asked).toMatchObject({ "history/runs": 2, "example.history.v1.HistoryService/ListRuns": 2 });
});
