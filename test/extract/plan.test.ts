import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Segment } from "../../src/archive/manifest/manifest.ts";
import type { HeldTable } from "../../src/archive/write/held-tables.ts";
import { heldWindows, windowKey } from "../../src/extract/plan/held-window.ts";
import { type PlanAnswers, type PlanInput, type PlanStep, planTable } from "../../src/extract/plan/plan.ts";
import { slicesOf } from "../../src/extract/plan/slices.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import type { TableFacts } from "../../src/model/source.ts";

const run = {
  instanceId: "alpha",
  runId: "r",
  status: "FINISHED",
  started: 1n,
  ended: 2n,
  final: true,
  isMarkedFinal: true,
  storageVersion: "1",
};
const fills = tableNamed("fills");

/** What a gateway says that holds rows at these times. */
function factsOf(times: readonly bigint[]): TableFacts {
  const sorted = [...times].sort((a, b) => Number(a - b));
  return {
    rows: BigInt(times.length),
    first: sorted[0],
    last: sorted.at(-1),
    schemaFingerprint: "1",
    final: true,
  };
}

let files = 0;
function segment(from: bigint, to: bigint, rows: number): Segment {
  const file = `fills.g1.${String(++files).padStart(6, "0")}.ndjson.zst`;
  const texts = { from: from.toString(), to: to.toString() };
  const sizes = { rows, bytes: rows, storedBytes: rows, longestLine: 1 };
  return { file, bucket: "all", ...texts, ...sizes, sha256: "0".repeat(64), sorted: true };
}

function inputOf(times: readonly bigint[], segments: Segment[], more: Partial<PlanInput> = {}): PlanInput {
  const held: HeldTable = {
    grain: null,
    fullScan: null,
    segments,
    parquet: [],
    quarantine: [],
    compared: new Set(),
    evidence: [],
  };
  return {
    table: "fills",
    run,
    until: undefined,
    facts: new Map([["fills", factsOf(times)]]),
    isCounted: true,
    held,
    former: undefined,
    sliceRows: 10,
    acceptShrink: false,
    comesWhole: false,
    needsEnd: false,
    maySplit: true,
    ...more,
  };
}

/** Plans to the end, with a gateway's answers; gives the windows that it was asked to count, too. */
function planned(input: PlanInput, times: readonly bigint[]) {
  const counts = new Map<string, number>();
  const asked: string[] = [];
  for (;;) {
    const step: PlanStep = planTable(input, { counts });
    if (step.kind === "fetch") return { plan: step, asked };
    if (step.kind !== "count") throw new Error(step.kind);
    for (const window of step.windows) {
      asked.push(windowKey(window));
      counts.set(windowKey(window), times.filter((ts) => ts >= window.from && ts < window.to).length);
    }
  }
}

describe("the planner", () => {
  it("asks for what covers the table exactly, once with what stays of what is held", () => {
    const world = fc.record({
      times: fc.array(fc.bigInt(0n, 999n), { minLength: 1, maxLength: 80 }),
      cuts: fc.uniqueArray(fc.bigInt(0n, 1000n), { maxLength: 12 }),
      // of each held window: whether it is held at all, and by how many rows it was different then
      held: fc.array(fc.tuple(fc.boolean(), fc.integer({ min: -1, max: 1 })), {
        minLength: 13,
        maxLength: 13,
      }),
      sliceRows: fc.integer({ min: 1, max: 50 }),
    });
    fc.assert(
      fc.property(world, ({ times, cuts, held, sliceRows }) => {
        const edges = [0n, ...cuts, 1000n].sort((a, b) => Number(a - b));
        const within = (from: bigint, to: bigint) => times.filter((ts) => ts >= from && ts < to).length;
        const segments: Segment[] = [];
        let right = 0;
        edges.slice(0, -1).forEach((from, i) => {
          const to = edges[i + 1]!;
          const [isHeld, off] = held[i]!;
          if (from === to || !isHeld) return;
          const rows = Math.max(0, within(from, to) + off);
          segments.push(segment(from, to, rows));
          if (rows === within(from, to)) right++;
        });
        const input = inputOf(times, segments, { sliceRows });
        const { plan, asked } = planned(input, times);
        const kept = segments.filter((held) => !plan.drop.includes(held));
        const slices = [...slicesOf(run, fills, plan)];
        // neighbours whose differences cancel out look alike from outside, and are not dropped
        const differing = kept.filter(({ from, to, rows }) => rows !== within(BigInt(from), BigInt(to)));
        const sum = differing.reduce(
          (s, { from, to, rows }) => s + rows - within(BigInt(from), BigInt(to)),
          0,
        );
        expect(sum).toBe(0);
        expect(plan.drop.length).toBeLessThanOrEqual(segments.length - right);
        // no instant twice, none that has a row left out
        const windows = [...heldWindows({ segments: kept, quarantine: [] }), ...slices];
        windows.sort((a, b) => Number(a.from - b.from));
        for (const [i, window] of windows.slice(1).entries())
          expect(window.from).toBeGreaterThanOrEqual(windows[i]!.to);
        for (const ts of times)
          expect(windows.filter(({ from, to }) => ts >= from && ts < to)).toHaveLength(1);
        expect(new Set(asked).size).toBe(asked.length);
        expect(plan.rows).toBe(times.length - kept.reduce((rows, segment) => rows + segment.rows, 0));
        // the same question has the same answer
        const counts = new Map(asked.map((key) => [key, within(...bounds(key))]));
        expect(planTable(input, { counts })).toEqual(plan);
      }),
      { numRuns: 300 },
    );
  });

  it("finds one changed window among many in a number of questions that grows with their logarithm", () => {
    const times = Array.from({ length: 1024 }, (_, i) => BigInt(i));
    const segments = times.map((ts) => segment(ts, ts + 1n, ts === 700n ? 0 : 1));
    const { plan, asked } = planned(inputOf(times, segments), times);
    expect(plan.drop.map(({ from }) => from)).toEqual(["700"]);
    expect([...slicesOf(run, fills, plan)].map(({ from, to }) => [from, to])).toEqual([[700n, 701n]]);
    expect(asked.length).toBe(1 + 2 * 10);
  });

  it("takes up a full scan that was made up to the same instant, and asks for another one else", () => {
    const fullScan = {
      rows: 2,
      first: "5",
      last: "9",
      sha256: "",
      until: null,
      openEnds: [],
      answers: [{ rows: 2, bytes: 200, wireBytes: 200 }],
      longestLine: 100,
      cutMs: null,
    };
    const input = inputOf([], [], { facts: null, isCounted: false });
    const held = { ...input.held, fullScan };
    const none: PlanAnswers = { counts: new Map() };
    expect(planTable(input, none)).toEqual({ kind: "scan" });
    expect(planTable({ ...input, held, until: 20n }, none)).toEqual({ kind: "scan" });
    const plan = planTable({ ...input, held }, none);
    expect(plan).toMatchObject({ kind: "fetch", rows: 2, gaps: [{ from: 5n, to: 10n }] });
    expect(planTable(input, { ...none, fullScan })).toEqual(plan);
    expect(planTable(input, { ...none, fullScan: "absent" })).toEqual({ kind: "absent", drop: [] });
  });

  it("plans a table of 2^64 - 1 rows at once, slice by slice", () => {
    const facts = { ...factsOf([0n, 9_000_000_000_000_000_000n]), rows: 2n ** 64n - 1n };
    const input = inputOf([], [], { facts: new Map([["fills", facts]]) });
    const step = planTable(input, { counts: new Map() });
    if (step.kind !== "fetch") throw new Error(step.kind);
    const slices = slicesOf(run, fills, step);
    const few = [slices.next(), slices.next(), slices.next()].map(({ value }) => value!);
    expect(few.map(({ from }) => from)).toEqual([0n, few[0]!.to, few[1]!.to]);
    expect(few[0]!.to).toBeGreaterThan(0n);
  });
});

function bounds(key: string): [bigint, bigint] {
  const [from, to] = key.split(" ");
  return [BigInt(from!), BigInt(to!)];
}
