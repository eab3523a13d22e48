// @module-tag slow
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { finishedRuns } from "../../src/extract/choose/finished-runs.ts";
import { RunLists } from "../../src/extract/choose/run-lists.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { ListedRun, RunEntry } from "../../src/model/source.ts";
import { archiveWorld } from "../fixtures/archive/archived-world.ts";
import { turnsIn } from "../fixtures/source/count-turns.ts";
import { processorMs } from "../fixtures/source/longest-turn.ts";
import { ListedRunSource } from "../fixtures/source/many-runs.ts";
import { type ScriptedListing, ScriptedLists } from "../fixtures/source/scripted-lists.ts";
import { isTestAll } from "../fixtures/trials/cases.ts";

let folder: string;
let dir: string;
let count = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-finished-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeEach(() => {
  dir = join(folder, `archive-${++count}`);
});

const rules = { finishedStatus: [], settled: () => 1_000_000n };

/** Finished runs `r1`, `r2`, …, of the numbers given. */
function entries(...numbers: number[]): RunEntry[] {
  return numbers.map((number) => ({
    instanceId: "i",
    runId: `r${number}`,
    status: "FINISHED",
    started: BigInt(number) * 1000n,
    ended: BigInt(number) * 1000n + 1n,
    final: true,
    storageVersion: "1",
  }));
}
const running = (number: number): RunEntry => ({
  ...entries(number)[0]!,
  status: "RUNNING",
  ended: undefined,
  final: false,
});
const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
const one = (runs: RunEntry[] | null | RunvaultError, more: Partial<ScriptedListing> = {}) => ({
  runs: { i: [runs] },
  ...more,
});

/** Archives runs of these numbers, COMPLETE or OPEN. */
async function archived(numbers: readonly number[], final = true) {
  for (const number of numbers) {
    const source = new ListedRunSource({ instanceId: "i", runId: `r${number}` }, number);
    if (!final) {
      source.entry = running(number);
      source.manners = { final: false };
    }
    await archiveWorld(dir, source, { tables: ["fills"] });
  }
  return await openArchive(dir, { create: true });
}

/** The archive, as one of this source. */
function ofSource(archive: Archive | null, ...addresses: string[]) {
  return archive === null ? null : { archive, addresses: ["rows in memory", ...addresses] };
}

async function found(
  listings: Record<string, ScriptedListing>,
  archive: Archive | null = null,
  only?: string[],
) {
  const source = new ScriptedLists(listings);
  const { runs, findings } = await finishedRuns(new RunLists(source, rules), only, ofSource(archive));
  return {
    asked: source.asked,
    runs: runs.map(({ runId, listed }) => (listed ? runId : `(${runId})`)),
    notes: findings.filter(({ error }) => error === null).map(({ text }) => text),
    errors: findings.flatMap(({ error, runIds }) => (error === null ? [] : [`${error.code} ${runIds}`])),
  };
}

describe("two lists", () => {
  test("that name the same runs are each asked once", async () => {
    const list = one(entries(1, 2, 3));
    expect(await found({ RPC: list, REST: list })).toEqual({
      asked: ["RPC instances", "REST instances", "RPC runs i", "REST runs i"],
      runs: ["r1", "r2", "r3"],
      notes: [],
      errors: [],
    });
  });

  test("of which one is cut are a note, and the runs are those of the other", async () => {
    for (const cut of [one(entries(4, 5)), one(entries(1, 2))]) {
      const whole = one(entries(1, 2, 3, 4, 5));
      for (const lists of [
        { RPC: whole, REST: cut },
        { RPC: cut, REST: whole },
      ]) {
        const { runs, notes, errors } = await found(lists);
        expect([runs.sort(), notes.length, errors]).toEqual([["r1", "r2", "r3", "r4", "r5"], 1, []]);
      }
    }
  });

  test("that each lack a run of the other contradict each other: the union is taken, and told", async () => {
    const { runs, notes, errors } = await found({ RPC: one(entries(1, 2)), REST: one(entries(2, 3)) });
    expect(runs).toEqual(["r1", "r2", "r3"]);
    expect(notes).toEqual([]);
    expect(errors).toEqual(["unverified r3,r1"]);
  });

  test("between which a run ended are asked once more, and agree", async () => {
    const before = [...entries(1), running(2)];
    const after = entries(1, 2);
    const rpc = { runs: { i: [before, after] } };
    expect(await found({ RPC: rpc, REST: one(after) })).toMatchObject({
      runs: ["r1", "r2"],
      notes: [],
      errors: [],
    });
  });

  test("that do not agree about a run's end are told, and the run is taken", async () => {
    const { runs, errors } = await found({
      RPC: one([...entries(1), running(2)]),
      REST: one(entries(1, 2)),
    });
    expect(runs).toEqual(["r1", "r2"]);
    expect(errors).toEqual(["unverified r2"]);
  });

  test("of which one fails are one list, and the failure is told once", async () => {
    const broken = one(new RunvaultError("history_query_failed", "no"));
    for (const lists of [
      { RPC: broken, REST: one(entries(1, 2)) },
      { RPC: one(entries(1, 2)), REST: broken },
    ]) {
      const { runs, errors, asked } = await found(lists);
      expect([runs, errors]).toEqual([["r1", "r2"], ["history_query_failed "]]);
      expect(asked.filter((question) => / runs i$/.test(question)).length).toBeLessThanOrEqual(3);
    }
  });

  test("costs a run alone where its entry cannot be read, unless another list describes it", async () => {
    const fault = new RunvaultError("not_a_gateway", "ts_started: 1.5", { scope: "run" });
    const odd: (RunEntry & Pick<ListedRun, "text" | "fault">)[] = [
      ...entries(1, 3).map((entry) => ({ ...entry, text: undefined })),
      { ...running(2), status: "", text: undefined, fault },
    ];
    const alone = await found({ REST: one(odd) });
    expect([alone.runs, alone.errors]).toEqual([["r1", "r3"], ["not_a_gateway r2"]]);
    const beside = await found({ RPC: one(odd), REST: one(entries(1, 2, 3)) });
    expect([beside.runs.toSorted(), beside.errors]).toEqual([["r1", "r2", "r3"], ["not_a_gateway r2"]]);
  });

  test("of instances, of which one fails, are one list, and nothing is taken for gone", async () => {
    const archive = await archived([1]);
    const broken = { runs: {}, broken: new RunvaultError("history_query_failed", "no") };
    const other: ScriptedListing = { runs: { j: [entries(7).map((run) => ({ ...run, instanceId: "j" }))] } };
    expect(await found({ RPC: broken, REST: other }, archive)).toMatchObject({
      runs: ["r7"],
      notes: [expect.stringMatching(/RPC list of runs lacks r7/)],
      errors: ["history_query_failed "],
    });
  });

  test("of which one does not exist are one list, without a word", async () => {
    const none = one(null, { broken: new RunvaultError("route_not_found", "no") });
    expect(await found({ RPC: none, REST: one(entries(1)) })).toMatchObject({
      runs: ["r1"],
      notes: [],
      errors: [],
    });
  });
});

describe("a run that only something else names", () => {
  test("is taken by its summary: named by the instances", async () => {
    const list = one(entries(1, 2), { names: { i: ["r1", "r2", "r3"] } });
    const { runs, errors, asked } = await found({ REST: list });
    expect([runs, errors]).toEqual([["r1", "r2", "r3"], []]);
    expect(asked.at(-1)).toBe("summary i/r3");
  });

  test("is taken by its summary: named by the instance's own document, where there is no list of runs", async () => {
    const { runs, asked } = await found({ REST: one(null, { names: { i: ["r1"] }, current: { i: "r9" } }) });
    expect(runs).toEqual(["r1", "r9"]);
    expect(asked).toEqual([
      "REST instances",
      "REST runs i",
      "REST instance i",
      "summary i/r1",
      "summary i/r9",
    ]);
  });
});

describe("a list of a round number of runs", () => {
  const hundred = upTo(100);
  const whole = one(entries(...hundred));

  test("that another list confirms is whole", async () => {
    expect(await found({ RPC: whole, REST: whole })).toMatchObject({ notes: [], errors: [] });
    const confirmed = one(entries(...hundred), { names: { i: hundred.map((number) => `r${number}`) } });
    expect(await found({ REST: confirmed })).toMatchObject({ notes: [], errors: [] });
  });

  test("that nothing confirms is a note, until its oldest run is archived", async () => {
    const first = await found({ REST: whole });
    expect(first).toMatchObject({
      notes: [expect.stringMatching(/100 runs may have been truncated/)],
      errors: [],
    });
    expect(first.asked).toContain("REST instance i");
    expect(await found({ REST: whole }, await archived([1]))).toMatchObject({ notes: [], errors: [] });
  });

  test("that goes on from what is archived is no alarm, though the gateway drops the oldest", async () => {
    const archive = await archived([1, 2, 3]);
    const later = one(entries(...upTo(102, 3)));
    const { notes, errors, runs } = await found({ REST: later }, archive);
    expect([notes, errors, runs.length]).toEqual([
      ["archived COMPLETE and no longer listed: r1, r2"],
      [],
      100,
    ]);
  });

  test("that does not reach back to what is archived is told: runs between may be missing", async () => {
    const archive = await archived([1, 2]);
    const { errors, runs } = await found({ REST: one(entries(...upTo(150, 51))) }, archive);
    expect([errors, runs.length]).toEqual([["unverified "], 100]);
  });

  test("that lacks the instance's current run is told", async () => {
    const cut = one(entries(...hundred), { current: { i: "r101" } });
    const { errors, runs } = await found({ REST: cut });
    expect(errors).toEqual(["unverified r101"]);
    expect(runs).toHaveLength(101);
  });
});

test("lists of which one does not know the instance are those of the other, and one that none knows is told", async () => {
  const stranger: ScriptedListing = { runs: {} };
  const both = { RPC: stranger, REST: one(entries(1)) };
  expect(await found(both, null, ["i"])).toMatchObject({ runs: ["r1"], errors: [] });
  expect(await found(both, null, ["j"])).toMatchObject({ runs: [], errors: ["instance_not_found "] });
});

test("an instance that is listed, and whose own list does not know it, is told and not taken for gone", async () => {
  const listed: ScriptedListing = { runs: {}, names: { i: ["r1"] } };
  expect(await found({ REST: listed }, await archived([1]))).toMatchObject({
    runs: [],
    notes: [],
    errors: ["instance_not_found "],
  });
});

test("an instance that is given twice is taken once", async () => {
  expect(await found({ REST: one(entries(1)) }, null, ["i", "i"])).toMatchObject({ runs: ["r1"] });
});

test.runIf(isTestAll)("sixty nights of a gateway that keeps its last fifty runs are no alarm", async () => {
  for (const night of upTo(60)) {
    const list = one([...entries(...upTo(night, Math.max(1, night - 49))), running(night + 1)]);
    const { runs, errors } = await found({ REST: list }, await openArchive(dir, { create: true }));
    expect([runs.at(-1), errors]).toEqual([`r${night}`, []]);
    await archived([night]);
  }
});

test("a short list that keeps only the last run is no alarm, however old what is archived", async () => {
  const archive = await archived([1, 2]);
  expect(await found({ REST: one(entries(7)) }, archive)).toMatchObject({ runs: ["r7"], errors: [] });
});

test("what is unproven in the archive and unlisted is handed on as such, of instances that are gone, too", async () => {
  const archive = await archived([1]);
  await archived([2], false);
  expect(await found({ REST: one(entries(3)) }, archive)).toMatchObject({ runs: ["r3", "(r2)"], errors: [] });
  const elsewhere: ScriptedListing = { runs: { j: [[]] } };
  const gone = await found({ REST: elsewhere }, archive);
  expect(gone).toMatchObject({ runs: ["(r2)"], notes: [expect.stringContaining("r1")], errors: [] });
  expect(gone.asked).toContain("REST runs i");
  expect(await found({ REST: elsewhere }, archive, ["i"])).toMatchObject({ runs: ["(r2)"], errors: [] });
});

test("an instance that the list of instances lacks is asked for where something of it is unproven", async () => {
  const archive = await archived([2], false);
  const hidden: ScriptedListing = { runs: { i: [entries(2, 3)] } };
  const source = new ScriptedLists({ REST: hidden });
  source.instances = async () => [];
  const listings = (await source.listings()).map((listing) => ({ ...listing, instances: async () => [] }));
  source.listings = async () => listings;
  const { runs } = await finishedRuns(new RunLists(source, rules), undefined, ofSource(archive));
  expect(runs.map(({ runId, listed }) => [runId, listed])).toEqual([
    ["r2", true],
    ["r3", true],
  ]);
});

test("runs of instances that came from another source are not missed here", async () => {
  const archive = await archived([1]);
  await archived([2], false);
  const lists = new RunLists(new ScriptedLists({ REST: { runs: { j: [[]] } } }), rules);
  const there = { archive, addresses: ["elsewhere"] };
  const { runs, findings } = await finishedRuns(lists, undefined, there);
  expect({ runs, findings }).toEqual({ runs: [], findings: [] });
});

test("a gateway that names no instance at all is told where some are archived from it", async () => {
  const archive = await archived([1]);
  expect(await found({ REST: { runs: {} } }, archive)).toMatchObject({ runs: [], errors: ["unverified "] });
  expect(await found({ REST: { runs: {} } })).toMatchObject({ runs: [], errors: [] });
});

test("a manifest that cannot be read costs its own run alone", async () => {
  const archive = await archived([1, 2]);
  await writeFile(archive.layout.manifestFile({ instanceId: "i", runId: "r1" }), "{}");
  const { runs, errors } = await found({ REST: one(entries(3)) }, archive);
  expect([runs, errors]).toEqual([["r3"], ["archive_damaged "]]);
  // of a run that is listed, its own job tells
  expect((await found({ REST: one(entries(1, 3)) }, archive)).errors).toEqual([]);
});

describe("a job", () => {
  const run = { instanceId: "i", runId: "r1" };

  test("asks for a list once, and again only when told to", async () => {
    const moved = entries(1, 2).map((entry) => ({ ...entry, storageVersion: "2" }));
    const source = new ScriptedLists({ REST: { runs: { i: [entries(1, 2), moved] } } });
    const lists = new RunLists(source, rules);
    for (let i = 0; i < 3; i++) expect((await lists.describe(run)).storageVersion).toBe("1");
    expect((await lists.describeAgain(run)).storageVersion).toBe("2");
    expect((await lists.describe({ ...run, runId: "r2" })).storageVersion).toBe("2");
    expect(source.asked).toEqual(["REST runs i", "REST runs i"]);
    expect(Buffer.from((await lists.document(run, "run"))!).toString()).toBe("r1");
  });

  test("finds a run in the second list that the first lacks", async () => {
    const source = new ScriptedLists({ RPC: one(entries(2)), REST: one(entries(1, 2)) });
    expect(await new RunLists(source, rules).describe(run)).toMatchObject({ runId: "r1", final: true });
  });

  test("does not find a run that no list has, unless a list may have been cut and the summary knows it", async () => {
    const short = new RunLists(new ScriptedLists({ REST: one(entries(...upTo(19, 2))) }), rules);
    await expect(short.describe(run)).rejects.toMatchObject({ code: "run_not_found" });
    const cut = new RunLists(new ScriptedLists({ REST: one(entries(...upTo(101, 2))) }), rules);
    expect(await cut.describe(run)).toMatchObject({ runId: "r1", status: "FINISHED", final: true });
  });

  // a list of this one run called it COMPLETE, and it was not asked about again
  test("takes a profile's own word that rows may still be added, whatever other runs are", async () => {
    const described = { tables: ["fills"], none: [], by: "acme" } as const;
    const final = async (saysFinal: boolean, more: object) => {
      const list = entries(1).map((entry) => ({ ...entry, final: false, saysFinal }));
      const source = Object.assign(new ScriptedLists({ REST: one(list) }), more);
      return (await new RunLists(source, rules).describe(run)).final;
    };
    expect(await final(true, { described })).toBe(false);
    expect(await final(false, { described })).toBe(true);
    expect(await final(true, {})).toBe(true);
  });

  // a run that was alone in its instance's list was COMPLETE while rows were still added
  test("knows that its source marks runs as final by another instance's list, or by what is remembered", async () => {
    const late = entries(1).map((entry) => ({ ...entry, final: false }));
    const other = entries(2).map((entry) => ({ ...entry, instanceId: "j" }));
    const source = new ScriptedLists({ REST: { runs: { i: [late], j: [other] } } });
    const lists = new RunLists(source, rules);
    expect([(await lists.describe(run)).final, lists.marksFinal]).toEqual([true, false]);
    await lists.describe({ instanceId: "j", runId: "r2" });
    expect([(await lists.describe(run)).final, lists.marksFinal]).toEqual([false, true]);
    const remembered = new RunLists(source, { ...rules, marksFinal: true });
    expect((await remembered.describe(run)).final).toBe(false);
  });

  // caught by: a list without the mark that is read as if it said of each run that rows may still come
  test("does not miss the mark in lists that have none", async () => {
    const silent = entries(1).map((entry) => ({ ...entry, final: false, saysFinal: false }));
    const source = new ScriptedLists({ RPC: one(silent), REST: one(entries(1)) });
    const lists = new RunLists(source, rules);
    for (const listing of await lists.listings()) await lists.runs(listing, "i");
    expect((await lists.describe(run)).final).toBe(true);
  });

  test("asks again after a list that failed", async () => {
    const failure = new RunvaultError("history_query_failed", "no");
    const source = new ScriptedLists({ REST: { runs: { i: [failure, entries(1)] } } });
    const lists = new RunLists(source, rules);
    await expect(lists.describe(run)).rejects.toMatchObject({ code: "history_query_failed" });
    expect(await lists.describe(run)).toMatchObject({ runId: "r1" });
  });
});

describe("an odd id in a list", () => {
  test.each([
    ["a NUL", "r\u00002"],
    ["a line end", "r\n"],
    ["a control character of eight bits", "r\u009b"],
    ["half of a surrogate pair", "r\ud800"],
    ["two thousand characters", "r".repeat(2000)],
  ])("with %s costs that run alone", async (_, runId) => {
    const list = one([entries(1)[0]!, { ...entries(2)[0]!, runId }, entries(3)[0]!]);
    for (const listings of [{ RPC: list }, { RPC: list, REST: list }]) {
      const { asked, runs, errors } = await found(listings);
      expect([runs, errors]).toEqual([["r1", "r3"], [`refused ${runId}`]]);
      expect(asked.filter((question) => question.startsWith("summary"))).toEqual([]);
    }
  });

  test("costs its instance alone", async () => {
    const names = { "a\u0000": ["r9"] };
    const { asked, runs, errors } = await found({ REST: one(entries(1), { names }) });
    expect([runs, errors]).toEqual([["r1"], ["refused "]]);
    expect(asked).toEqual(["REST instances", "REST runs i"]);
  });

  test("with slashes, dots or letters of any alphabet is no odd one", async () => {
    const list = one(
      ["../x", "a/b", "..", "ü 你 ☃", "r".repeat(1000)].map((runId) => ({ ...entries(1)[0]!, runId })),
    );
    const { runs, errors } = await found({ REST: list });
    expect([runs.length, errors]).toEqual([5, []]);
  });
});

test("a list of many runs is gone through once, not once a run", async () => {
  const many = entries(...upTo(60_000)).map((entry) => ({ ...entry, final: false }));
  let count = 0;
  const spent = await processorMs(async () => {
    count = (await found({ REST: one(many) })).runs.length;
  });
  expect(count).toBe(60_000);
  expect(spent).toBeLessThan(3000);
});

test("a list of many runs with a remark each is gone through once, and lets the event loop go on", async () => {
  const many = entries(...upTo(60_000)).map((entry) => ({ ...entry, final: entry.runId === "r1" }));
  const notes: string[] = [];
  let turns = 0;
  const spent = await processorMs(async () => {
    turns = await turnsIn(async () => {
      notes.push(...(await found({ REST: one(many) })).notes);
    });
  });
  expect(notes).toEqual([expect.stringContaining("and 59996 more: ended, but rows may still be added")]);
  expect(turns).toBeGreaterThanOrEqual(5);
  expect(spent).toBeLessThan(5000);
});
