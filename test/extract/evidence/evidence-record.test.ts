import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Evidence, everything } from "../../../src/archive/manifest/evidence.ts";
import {
  EvidenceRecord,
  isNewVersion,
  isOfOtherVersion,
} from "../../../src/extract/evidence/evidence-record.ts";
import { lacking } from "../../../src/extract/evidence/lacking.ts";
import { RunEvidence } from "../../../src/extract/evidence/run-evidence.ts";
import type { LookedAt } from "../../../src/extract/evidence/window-rows.ts";
import type { Window } from "../../../src/extract/plan/held-window.ts";
import { lineHash } from "../../../src/row/row-hash.ts";
import { trialCount } from "../../fixtures/trials/trials.ts";

/** A table whose rows are at the instants 0 to 19, two of them each; a row is a number. */
const row = fc.integer({ min: 0, max: 39 });
const timeOf = (one: number) => BigInt(one >> 1);
const bounds = fc
  .tuple(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 20 }))
  .map(([a, b]) => ({ from: BigInt(Math.min(a, b)), to: BigInt(Math.max(a, b)) }));
const subset = fc.uniqueArray(row, { maxLength: 40 });

const within = (rows: readonly number[], { from, to }: Window) =>
  rows.filter((one) => timeOf(one) >= from && timeOf(one) < to);
const hashOf = (rows: readonly number[]) =>
  rows.reduce((sum, one) => sum + lineHash(`${one}`), 0n).toString();
const endsOf = (rows: readonly number[]) => {
  const times = rows.map(timeOf).sort((a, b) => Number(a - b));
  return { first: times[0], last: times.at(-1) };
};

/** A row of the first instant and one of the last, whichever. */
const keysOf = (rows: readonly number[]) => {
  const { first, last } = endsOf(rows);
  const keyAt = (time: bigint | undefined) => `${rows.find((one) => timeOf(one) === time)}`;
  return { firstKey: keyAt(first), lastKey: keyAt(last) };
};

function seen(by: Evidence["by"], window: Window, rows: readonly number[]): Evidence {
  const { first, last } = endsOf(rows);
  return {
    by,
    from: window.from.toString(),
    to: window.to.toString(),
    rows: rows.length,
    first: first?.toString() ?? null,
    last: last?.toString() ?? null,
    ...(by === "brought" && rows.length > 0 ? keysOf(rows) : {}),
    hash: by === "brought" ? hashOf(rows) : null,
    version: "1",
  };
}

function hereOf(rows: readonly number[]): LookedAt {
  return {
    within: async (window) => {
      const inside = within(rows, window);
      return { rows: inside.length, ...endsOf(inside) };
    },
    hashWithin: async (window) => hashOf(within(rows, window)),
    has: async (ts, key) => rows.some((one) => timeOf(one) === ts && `${one}` === key),
  };
}

describe("what was seen of a table", () => {
  it("is never more than what is here without being told, in ten thousand worlds", async () => {
    const event = fc.record({
      by: fc.constantFrom<Evidence["by"]>("told", "brought"),
      window: bounds,
      rows: subset,
      isKilled: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 6 }), subset, async (events, here) => {
        let record = new EvidenceRecord();
        const journal: Evidence[] = [];
        for (const { by, window, rows, isKilled } of events) {
          record.learn(seen(by, window, within(rows, window)));
          journal.push(...(record.unnoted()?.evidence ?? []));
          if (!isKilled) continue;
          // a job that goes on knows what the journal says, and no more
          record = new EvidenceRecord();
          record.resume(journal);
        }
        const lacks = await lacking(record, hereOf(here), undefined, "1");
        const isFewer = events.some(
          ({ window, rows }) => within(here, window).length < within(rows, window).length,
        );
        const isOther = events.some(({ by, window, rows }) => {
          const [own, came] = [within(here, window), within(rows, window)];
          return by === "brought" && own.length === came.length && !came.every((one) => own.includes(one));
        });
        const isWithoutEnd = events.some(({ by, window, rows }) => {
          const came = within(rows, window);
          const ends = came.length === 0 ? [] : Object.values(keysOf(came)).map(Number);
          return by === "brought" && ends.some((one) => !here.includes(one));
        });
        const areAllHere = events.every(({ rows, window }) =>
          within(rows, window).every((one) => here.includes(one)),
        );
        if (isFewer || isOther || isWithoutEnd) expect(lacks).not.toEqual([]);
        if (areAllHere) expect(lacks).toEqual([]);
      }),
      { numRuns: trialCount(10_000) },
    );
  });

  it("behind the horizon of a run that goes on says nothing yet", async () => {
    const record = new EvidenceRecord();
    record.learn(seen("told", { from: 0n, to: 10n }, [1, 18]));
    expect(await lacking(record, hereOf([1]), 9n, "1")).toEqual([]);
    expect(await lacking(record, hereOf([1]), 10n, "1")).toHaveLength(1);
    // but for its first row, which is known
    expect(await lacking(record, hereOf([2]), 9n, "1")).toHaveLength(1);
  });

  it("is of the version that was told last, whatever was seen under another", () => {
    const evidence = new RunEvidence();
    for (const version of ["1", "2"]) {
      evidence.isOf(version);
      evidence.sent("fills", { from: 1n, to: 2n, rows: 1 });
    }
    expect(evidence.of("fills").items.map(({ version }) => version)).toEqual(["1", "2"]);
  });

  it("holds as many rows of another hash against their own version alone", async () => {
    const record = new EvidenceRecord();
    record.learn(seen("brought", { from: 0n, to: 10n }, [2, 4, 6]));
    expect(await lacking(record, hereOf([2, 5, 6]), undefined, "1")).toHaveLength(1);
    for (const other of ["2", null])
      expect(await lacking(record, hereOf([2, 5, 6]), undefined, other)).toEqual([]);
  });

  // without a version, rows at one instant may be as many others: only the key tells
  it("is not here where as many rows are, but not the first or the last that came", async () => {
    const evidence = new RunEvidence();
    evidence.sent("fills", { from: 1n, to: 2n, rows: 1, firstKey: "2", lastKey: "2" });
    const record = evidence.of("fills");
    expect(await lacking(record, hereOf([2]), undefined, null)).toEqual([]);
    expect(await lacking(record, hereOf([3]), undefined, null)).toHaveLength(1);
    expect(await lacking(record, hereOf([2, 3]), undefined, null)).toEqual([]);
  });

  it("is let go for good: the journal says so as well", () => {
    const record = new EvidenceRecord();
    record.learn(seen("told", { from: 0n, to: 10n }, [2, 4]));
    record.unnoted();
    record.letGo(({ rows }) => rows === 2);
    expect(record.unnoted()).toEqual({ evidence: [], isAfresh: true });
    expect(record.unnoted()).toBeUndefined();
  });

  it("knows a beginning that moves back, which is another node's", () => {
    const record = new EvidenceRecord();
    for (const first of [1n, 5n]) record.begins(first);
    expect(record.movesBack).toBe(false);
    record.begins(1n);
    expect(record.movesBack).toBe(true);
  });

  it("has the window of all there is", () => {
    expect(BigInt(everything.to) - BigInt(everything.from)).toBe(2n ** 64n - 1n);
  });
});

describe("a version", () => {
  it.each([
    ["2", ["1"], true],
    ["1", ["2"], false],
    ["10", ["9"], true],
    ["b", ["a"], true],
    ["a", ["a", "b"], false],
    [undefined, [], false],
  ])("%s behind %j is new: %s", (version, before, isNew) => {
    expect(isNewVersion(version, new Set(before))).toBe(isNew);
  });
});

// caught by: rows that were seen while the run went on, let go without a look as soon as it has a version
it("what came under no version is of another one only in the command that it came in", () => {
  const item = { ...seen("brought", { from: 0n, to: 20n }, [1, 2]), version: null };
  expect(isOfOtherVersion(item, "1")).toBe(true);
  expect(isOfOtherVersion({ ...item, isOlder: true }, "1")).toBe(false);
  expect(isOfOtherVersion({ ...item, version: "0", isOlder: true }, "1")).toBe(true);
});
