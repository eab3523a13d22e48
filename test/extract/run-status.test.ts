import { expect, test } from "vitest";
import { standingOf } from "../../src/extract/choose/run-status.ts";

const now = 1_000n;
const rules = { finishedStatus: ["STOPPED"], settled: () => now };
const past = 900n;
const future = 1_100n;

type Case = [
  what: string,
  run: { status: string; started?: bigint; ended?: bigint; final?: boolean; saysFinal?: false },
  marksFinal: boolean,
  expected: { finished: boolean; final: boolean; remark?: RegExp; unknown?: boolean },
];

test.each<Case>([
  ["goes on", { status: "RUNNING" }, true, { finished: false, final: false }],
  ["goes on, in small letters", { status: "running" }, true, { finished: false, final: false }],
  ["has finished", { status: "FINISHED", ended: past, final: true }, true, { finished: true, final: true }],
  ["has failed", { status: "FAILED", ended: past, final: true }, true, { finished: true, final: true }],
  [
    "has finished by a clock that is ahead",
    { status: "FINISHED", ended: future, final: true },
    true,
    { finished: true, final: true },
  ],
  [
    "has finished, with rows yet to come",
    { status: "FINISHED", ended: past },
    true,
    { finished: true, final: false, remark: /rows may still be added/ },
  ],
  [
    "has finished, in a list that never says final",
    { status: "FINISHED", ended: past },
    false,
    { finished: true, final: true },
  ],
  [
    "has finished at a time that is not given, in such a list",
    { status: "FAILED" },
    false,
    { finished: true, final: true },
  ],
  [
    "is final and running",
    { status: "RUNNING", final: true },
    true,
    { finished: true, final: true, remark: /final although the status is RUNNING/ },
  ],
  [
    "runs on after its end",
    { status: "RUNNING", ended: past },
    true,
    {
      finished: true,
      final: false,
      remark: /end in the past although the status is RUNNING.*still be added/,
    },
  ],
  // a run that was resumed kept its old end: it was COMPLETE, and its new rows were not asked for
  [
    "runs on after its end, in a list that never says final",
    { status: "RUNNING", ended: past },
    false,
    { finished: true, final: false, remark: /end in the past.*still be added/ },
  ],
  [
    "runs on for ever by a gateway that has no word for final",
    { status: "RUNNING", ended: past, saysFinal: false },
    false,
    { finished: true, final: true, remark: /end in the past/ },
  ],
  ["runs towards an end", { status: "RUNNING", ended: future }, true, { finished: false, final: false }],
  [
    "ended before it started",
    { status: "RUNNING", started: 950n, ended: past },
    true,
    { finished: false, final: false, remark: /an end before the start/ },
  ],
  ["has the operator's word", { status: "stopped" }, false, { finished: true, final: true }],
  [
    "has a word that nobody knows",
    { status: "PAUSED" },
    true,
    { finished: false, final: false, remark: /"PAUSED"/, unknown: true },
  ],
  [
    "has such a word and ends in the future",
    { status: "PAUSED", ended: future },
    false,
    { finished: false, final: false, remark: /"PAUSED"/, unknown: true },
  ],
  [
    "has such a word and an end",
    { status: "PAUSED", ended: past },
    false,
    { finished: true, final: true, remark: /"PAUSED"/ },
  ],
  [
    "has such a word and is final",
    { status: "PAUSED", final: true },
    true,
    { finished: true, final: true, remark: /"PAUSED"/ },
  ],
  ["has no word", { status: "" }, false, { finished: false, final: false, remark: /""/, unknown: true }],
])("a run that %s", (_what, run, marksFinal, { remark, unknown = false, ...expected }) => {
  const standing = standingOf({ started: 1n, ended: undefined, final: false, ...run }, marksFinal, rules);
  expect(standing).toMatchObject({ ...expected, unknown });
  if (remark === undefined) expect(standing.remark).toBeNull();
  else expect(standing.remark).toMatch(remark);
});
