import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type AfterLine,
  type RunLine,
  type Trouble,
  troubleSchema,
} from "../../../src/pipeline/record/job-record.ts";
import { changesOf, troublesTold } from "../../../src/pipeline/tell/changes.ts";
import { type NightSeen, troublesNow } from "../../../src/pipeline/tell/troubles.ts";

const remindNs = 7n * 86_400_000_000_000n;

function at(number: number): string {
  return new Date(Date.UTC(2026, 0, 1 + number, 2, 15)).toISOString();
}

function error(code: string, exit: number, message = `it was ${code}`) {
  return { code, message, hint: null, exit };
}

type States = Readonly<Record<string, "COMPLETE" | "UNVERIFIED" | "INCOMPLETE" | "QUARANTINED">>;

function line(
  run: string,
  result: RunLine["result"],
  states: States = {},
  more: Partial<RunLine> = {},
): RunLine {
  const tables = Object.entries(states).map(([table, state]) => [
    table,
    { state, before: null, proof: null, rows: 1, accepted: false, error: null },
  ]);
  return {
    ...{ kind: "run", at: at(0), instance: "a", run, plan: "new", result },
    tables: Object.fromEntries(tables),
    ...{ rows: 0, bytes: 0, retries: 0, seconds: 0, steps: {}, error: null, exit: 0 },
    ...more,
  };
}

/** An execution in which all went well, but for what is given. */
function seen(more: Partial<NightSeen> = {}): NightSeen {
  return {
    ...{ at: at(0), begin: { job: "nightly" }, exit: 0, error: null, runs: [], after: [] },
    ...{
      looked: () => true,
      reconciles: true,
      reports: true,
      unproven: [],
      expiring: [],
      missed: [],
      died: [],
    },
    disk: { freeBytes: 1e12, nights: null },
    ...more,
  };
}

/** What is told, night by night: `+` worse, `-` mended, `!` again. Everybody hears. */
function told(nights: readonly Partial<NightSeen>[]): string[][] {
  let before: readonly Trouble[] = [];
  return nights.map((night, number) => {
    const now = troublesNow(seen({ at: at(number), ...night }), before);
    for (const trouble of now) troubleSchema.parse(trouble);
    const changes = changesOf(before, now, at(number), remindNs);
    before = troublesTold(changes, { worse: true, mended: true }, at(number));
    const marked = (mark: string, list: readonly Trouble[]) => list.map(({ key }) => `${mark}${key}`);
    return [...marked("+", changes.worse), ...marked("-", changes.mended), ...marked("!", changes.reminded)];
  });
}

const ok = line("r", "archived", { fills: "COMPLETE", orders: "COMPLETE" });
const bad = line("r", "archived", { fills: "UNVERIFIED", orders: "COMPLETE" });
const unlooked = { looked: () => false, after: null, expiring: null, disk: null };
const down = { ...unlooked, exit: 3, error: error("unreachable", 3) };

describe("night by night", () => {
  test.each<[string, readonly Partial<NightSeen>[], string[][]]>([
    ["all is well", [{ runs: [ok] }, {}], [[], []]],
    ["a job fails, goes on failing, and is mended", [down, down, {}], [["+job"], [], ["-job"]]],
    [
      "a job fails with a status that counts for more",
      [down, { ...down, exit: 7, error: error("storage_full", 7) }],
      [["+job"], ["+job"]],
    ],
    [
      "a table falls, stays so, and is mended",
      [{ runs: [ok] }, { runs: [bad] }, { runs: [bad] }, { runs: [ok] }],
      [[], ["+table:a/r/fills"], [], ["-table:a/r/fills"]],
    ],
    [
      "a table that was mended is told of although its run has nothing to do any more",
      [{ runs: [bad] }, { runs: [] }],
      [["+table:a/r/fills"], ["-table:a/r/fills"]],
    ],
    [
      "a table is accepted",
      [
        { runs: [bad] },
        { unproven: [{ ...unprovenOf("fills"), accepted: true }] },
        { runs: [accepted(bad)] },
      ],
      [["+table:a/r/fills"], ["-table:a/r/fills"], []],
    ],
    [
      "the gateway is down: nothing of its runs is mended, nothing new",
      [{ runs: [bad] }, { ...down, unproven: [unprovenOf("fills"), unprovenOf("bars")] }, { runs: [bad] }],
      [["+table:a/r/fills"], ["+job"], ["-job"]],
    ],
    [
      "the deadline comes first",
      [
        { runs: [bad] },
        { exit: 8, runs: [line("r", "not_tried")], unproven: [unprovenOf("fills"), unprovenOf("bars")] },
        { exit: 8, runs: [line("r", "stopped", { fills: "COMPLETE" })] },
        { runs: [ok] },
      ],
      [["+table:a/r/fills"], ["+job"], [], ["-job", "-table:a/r/fills"]],
    ],
    [
      "a run is held by another",
      [{ runs: [bad] }, { exit: 6, runs: [line("r", "held")] }],
      [["+table:a/r/fills"], ["+job"]],
    ],
    [
      "another committed it: by its manifest, it is as it was",
      [{ runs: [bad] }, { runs: [line("r", "by_other")], unproven: [unprovenOf("fills")] }],
      [["+table:a/r/fills"], []],
    ],
    [
      "a run fails as a whole: what was wrong with its tables was not mended",
      [
        { runs: [bad] },
        { exit: 3, runs: [line("r", "failed", {}, { exit: 3, error: error("timeout", 3) })] },
        { runs: [ok] },
      ],
      [["+table:a/r/fills"], ["+job", "+run:a/r"], ["-job", "-run:a/r", "-table:a/r/fills"]],
    ],
    [
      "a run expires, also where it was not reached, and is proven",
      [{ ...unlooked, exit: 8, expiring: [expiring("r")] }, { ...down, expiring: null }, { runs: [ok] }],
      [["+job", "+expiring:a/r"], ["+job"], ["-job", "-expiring:a/r"]],
    ],
    [
      "a run expires and is gone",
      [
        { runs: [bad], expiring: [expiring("r")] },
        { exit: 4, runs: [line("r", "gone", {}, { plan: "gone" })], unproven: [unprovenOf("fills")] },
        { runs: [line("r", "gone", {}, { plan: "gone" })], unproven: [unprovenOf("fills")] },
        {},
      ],
      [["+table:a/r/fills", "+expiring:a/r"], ["+job", "+gone:a/r"], ["-job"], []],
    ],
    [
      "an export fails, is not reached, and is mended; the verification fails, and is no longer asked for",
      [
        { exit: 7, after: [step("verify", null, true), step("export", "week.duckdb", true)] },
        down,
        { after: [step("export", "week.duckdb", false)] },
      ],
      [
        ["+job", "+after:verify", "+after:export:week.duckdb"],
        [],
        ["-job", "-after:verify", "-after:export:week.duckdb"],
      ],
    ],
    [
      "a start is missed, and an execution died",
      [
        {
          missed: [{ at: at(-1), why: "an execution was still running" }],
          died: [{ id: "k3v9x1ab", at: at(-1) }],
        },
        {},
      ],
      [[`+missed:${at(-1)}`, "+died:k3v9x1ab"], []],
    ],
    [
      "the disk fills, is at the edge, and has room again",
      [9, 2, 3, 2, 1, 3, 4].map((nights) => ({ disk: { freeBytes: 1e9, nights } })),
      [[], ["+disk"], [], [], ["+disk"], [], ["-disk"]],
    ],
    [
      "free space is not known for a night",
      [{ disk: { freeBytes: 1, nights: 0 } }, { disk: null }, { disk: { freeBytes: 1e12, nights: null } }],
      [["+disk"], [], ["-disk"]],
    ],
    [
      "a run that is no longer of the job is over, as one that was removed",
      [{ runs: [bad, line("s", "archived", { fills: "INCOMPLETE" })] }, { looked: () => true }],
      [
        ["+table:a/r/fills", "+table:a/s/fills"],
        ["-table:a/r/fills", "-table:a/s/fills"],
      ],
    ],
  ])("%s", (_, nights, expected) => {
    expect(told(nights)).toEqual(expected);
  });

  test("a run that is gone is never told of again, not by a reminder either", () => {
    const gone = { runs: [line("r", "gone", {}, { plan: "gone" })] };
    expect(told(Array.from({ length: 20 }, () => gone)).flat()).toEqual(["+gone:a/r"]);
  });

  test("books that do not balance are over when the run's do, and not when they were not looked at", () => {
    const [broken, sound] = [step("reconcile", "a/r", true), step("reconcile", "a/r", false)];
    expect(
      told([
        { after: [broken] },
        { after: [] },
        { after: [step("reconcile", "a/s", false)] },
        { after: [sound] },
      ]),
    ).toEqual([["+after:reconcile:a/r"], [], [], ["-after:reconcile:a/r"]]);
    expect(told([{ after: [broken] }, { after: [], reconciles: false }]).at(-1)).toEqual([
      "-after:reconcile:a/r",
    ]);
  });
});

function unprovenOf(table: string): NightSeen["unproven"][number] {
  return { instance: "a", run: "r", table, state: "UNVERIFIED", accepted: false, error: null };
}

function accepted(of: RunLine): RunLine {
  const tables = Object.entries(of.tables).map(([table, it]) => [table, { ...it, accepted: true }]);
  return { ...of, tables: Object.fromEntries(tables) };
}

function expiring(run: string) {
  return { instance: "a", run, forgotten: "2026-01-05T00:00:00Z" };
}

function step(what: AfterLine["what"], out: string | null, failed: boolean): AfterLine {
  return {
    ...{ kind: "after", at: at(0), what, out, rows: null, seconds: 1 },
    result: failed ? "failed" : "done",
    error: failed ? error("storage_full", 7) : null,
  };
}

describe("what is said of it", () => {
  const texts = (night: Partial<NightSeen>) =>
    troublesNow(seen(night), []).map(({ text, hint }) => [text, hint]);

  test("names what, why and what to do; what the error advises comes before what is usual", () => {
    const known = { ...error("unverified", 4, "the gateway counts 12 rows more"), hint: "Ask it again." };
    const told = { state: "UNVERIFIED", before: "COMPLETE", proof: null, rows: 1, accepted: false } as const;
    const run = line("r", "archived", {}, { tables: { fills: { ...told, error: known } } });
    expect(texts({ exit: 4, runs: [run], unproven: [unprovenOf("bars")] })).toEqual([
      ["the job nightly ended with exit status 4", "`runvault jobs show` shows the result of each run."],
      [
        "fills of a/r is UNVERIFIED: the gateway counts 12 rows more",
        "Ask it again. If the fault is known, `runvault maintain accept a/r fills --reason TEXT` accepts it.",
      ],
      [
        "bars of a/r is UNVERIFIED",
        "The next execution tries it again. If the fault is known, `runvault maintain accept a/r bars --reason TEXT` accepts it.",
      ],
    ]);
  });

  test("has instances as commands take them, so that two keys are never one", () => {
    const runs = [
      line("c", "failed", {}, { instance: "a/b", exit: 3 }),
      line("b/c", "failed", {}, { instance: "a", exit: 3 }),
    ];
    const now = troublesNow(seen({ runs }), []);
    expect(now.map(({ key }) => key)).toEqual(["run:a%2Fb/c", "run:a/b/c"]);
  });
});

test("a name that a shell would obey is in no command to copy", () => {
  for (const run of ["$(reboot)", "`reboot`", "a b", "a;b", "-x"]) {
    const table = { ...unprovenOf("fills"), ...(run === "-x" ? { instance: run } : { run }) };
    const [{ hint } = { hint: "" }] = troublesNow(seen({ unproven: [table] }), []);
    expect(hint).toContain("`runvault maintain accept INSTANCE/RUN fills --reason TEXT`");
  }
});

test("what was not looked at stays exactly as it was, whatever is found of others", () => {
  const run = fc.constantFrom<string>("r", "s", "t");
  const state = fc.constantFrom("COMPLETE", "UNVERIFIED", "INCOMPLETE" as const);
  const result = fc.constantFrom("archived", "failed", "stopped", "held", "not_tried", "gone" as const);
  const runs = fc
    .uniqueArray(fc.tuple(run, result, state), { selector: ([one]) => one })
    .map((all) => all.map(([one, came, fills]) => line(one, came, { fills }, { exit: 4 })));
  const unproven = fc.array(
    fc.tuple(run, state).map(([one, now]) => ({ ...unprovenOf("fills"), run: one, state: now })),
  );
  fc.assert(
    fc.property(
      runs,
      unproven,
      fc.uniqueArray(run),
      runs,
      unproven,
      (first, manifests, looked, second, later) => {
        const before = troublesTold(
          changesOf([], troublesNow(seen({ runs: first, unproven: manifests }), []), at(0), remindNs),
          { worse: true, mended: true },
          at(0),
        );
        // of those with a line, some were only begun
        const left = second.filter(
          (one) => looked.includes(one.run) || ["stopped", "held", "not_tried"].includes(one.result),
        );
        const night = seen({
          ...{ at: at(1), runs: left, unproven: later, expiring: null, disk: null, after: null },
          looked: ({ runId }) => looked.includes(runId) || left.some((one) => one.run === runId),
        });
        const changes = changesOf(before, troublesNow(night, before), at(1), remindNs);
        const of = (list: readonly Trouble[]) =>
          list.filter((one) => one.run !== null && !looked.includes(one.run));
        expect(of(changes.troubles)).toEqual(of(before));
        expect([...of(changes.worse), ...of(changes.mended), ...of(changes.reminded)]).toEqual([]);
      },
    ),
  );
});
