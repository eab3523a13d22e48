import { describe, expect, test } from "vitest";
import { finishedRuns } from "../../src/extract/choose/finished-runs.ts";
import { RunLists } from "../../src/extract/choose/run-lists.ts";
import type { RunEntry } from "../../src/model/source.ts";
import { type ScriptedListing, ScriptedLists } from "../fixtures/source/scripted-lists.ts";

const rules = { finishedStatus: [], settled: () => 1_000_000n };

const entries = (...numbers: number[]): RunEntry[] =>
  numbers.map((number) => ({
    instanceId: "i",
    runId: `r${number}`,
    status: "FINISHED",
    started: BigInt(number) * 1000n,
    ended: BigInt(number) * 1000n + 1n,
    final: true,
    storageVersion: "1",
  }));
const running = (number: number): RunEntry => ({
  ...entries(number)[0]!,
  status: "RUNNING",
  ended: undefined,
  final: false,
});
const list = (runs: RunEntry[] | null, more: Partial<ScriptedListing> = {}): ScriptedListing => ({
  runs: { i: [runs] },
  ...more,
});

/** What is doubted of some lists, and how a job ends that takes its runs from them. */
async function doubted(listings: Record<string, ScriptedListing>, only?: string[]) {
  const { runs, findings } = await finishedRuns(new RunLists(new ScriptedLists(listings), rules), only, null);
  const errors = findings.flatMap(({ error }) => (error === null ? [] : [error]));
  return {
    runs: runs.map(({ runId }) => runId),
    texts: errors.map(({ message }) => message),
    exits: errors.map(({ exit }) => exit),
  };
}

const more = { i: { text: "has_more says true", least: 4 } };

describe("a list of runs that says that it goes on", () => {
  // caught by: exit 0 of a job that took three of six runs
  test("is doubted, and its runs are taken", async () => {
    const found = await doubted({ REST: list(entries(1, 2, 3), { rests: more }) }, ["i"]);
    expect(found).toEqual({
      runs: ["r1", "r2", "r3"],
      texts: ["the REST list of runs names 3 runs and may be incomplete: has_more says true"],
      exits: [4],
    });
  });

  // caught by: an alarm although another list has all, or silence where that has the same part
  test("is not doubted where another has what it lacks, and is where that has no more", async () => {
    const cut = list(entries(1, 2, 3), { rests: more });
    expect((await doubted({ RPC: list(entries(1, 2, 3, 4)), REST: cut })).texts).toEqual([]);
    expect((await doubted({ RPC: list(entries(1, 2, 3)), REST: cut })).texts).toHaveLength(1);
    expect(
      (await doubted({ RPC: list(entries(1, 2, 3, 4), { rests: more }), REST: cut })).texts,
    ).toHaveLength(2);
  });

  // caught by: a run that is named, called unknown by a list that does not have all
  test("says nothing against a run that it lacks and that is named", async () => {
    const lists = new RunLists(new ScriptedLists({ REST: list(entries(1, 2, 3), { rests: more }) }), rules);
    expect((await lists.look({ instanceId: "i", runId: "r6" })).run.status).toBe("FINISHED");
    const source = new ScriptedLists({ REST: list(entries(1, 2, 3), { rests: more }) });
    source.document = async () => null;
    expect((await new RunLists(source, rules).look({ instanceId: "i", runId: "r6" })).run.status).toBe(
      "UNKNOWN",
    );
    const whole = new RunLists(new ScriptedLists({ REST: list(entries(1, 2, 3)) }), rules);
    await expect(whole.look({ instanceId: "i", runId: "r6" })).rejects.toMatchObject({
      code: "run_not_found",
    });
  });
});

// caught by: instances that no page named, missed by jobs of all instances; or an alarm for a job of one
test("a list of instances that says that it goes on is doubted where all are to be taken", async () => {
  const cut = list(entries(1), { rests: { "": { text: "total says 5", least: 5 } } });
  expect(await doubted({ REST: cut })).toMatchObject({
    texts: ["the REST list of instances names 1 instance and may be incomplete: total says 5"],
    exits: [4],
  });
  expect((await doubted({ REST: cut }, ["i"])).texts).toEqual([]);
});

describe("a latest run that the instance's own list lacks", () => {
  const named = { names: { i: ["r1", "r2"] }, latest: { i: "r9" } };

  // caught by: run_ids that end before the latest run, taken for all there is
  test("is taken, and where it has ended, the list is doubted", async () => {
    const { runs, texts } = await doubted({ REST: list(null, named) });
    expect(runs).toEqual(["r1", "r2", "r9"]);
    expect(texts).toEqual([
      expect.stringMatching(/its latest_run_id r9, which has ended, is not in its run_ids/),
    ]);
  });

  // caught by: an alarm each night for a gateway that names the run that goes on apart from those that ended
  test("is no doubt while it goes on, nor where a list of runs has all of them", async () => {
    const going = list([...entries(1, 2), running(9)], named);
    expect((await doubted({ REST: going })).texts).toEqual([]);
    expect((await doubted({ REST: list(entries(1, 2, 9), named) })).texts).toEqual([]);
  });
});
