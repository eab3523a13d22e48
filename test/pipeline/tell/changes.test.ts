import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tableStates } from "../../../src/archive/manifest/manifest.ts";
import type { Trouble } from "../../../src/pipeline/record/job-record.ts";
import { type Changes, changesOf, type Heard, troublesTold } from "../../../src/pipeline/tell/changes.ts";

const dayNs = 86_400_000_000_000n;
const heardAll: Heard = { worse: true, mended: true };

function night(number: number): string {
  return new Date(Date.UTC(2026, 0, 1 + number, 2, 15)).toISOString();
}

function trouble(key: string, level: string, at: string, more: Partial<Trouble> = {}): Trouble {
  const [kind = "", of = null] = key.split(":");
  const [instance = null, run = null, table = null] = of?.split("/") ?? [];
  return {
    ...{ key, kind: kind as Trouble["kind"], instance, run, table, level },
    ...{ text: `${key} is ${level}`, hint: null, since: at, told: null, mended: null },
    ...more,
  };
}

/** Nights in a row, of which each has what is wrong by then; what was told in each, and what is kept after the last. */
function nights(
  all: readonly (readonly (readonly [key: string, level: string])[])[],
  heard: (number: number) => Heard = () => heardAll,
) {
  let before: readonly Trouble[] = [];
  const told = all.map((wrong, number) => {
    const at = night(number);
    const changes = changesOf(
      before,
      wrong.map(([key, level]) => trouble(key, level, at)),
      at,
      7n * dayNs,
    );
    before = troublesTold(changes, heard(number), at);
    return lists(changes);
  });
  return { told, kept: before };
}

function lists({ worse, mended, reminded }: Changes) {
  const keys = (list: readonly Trouble[]) => list.map(({ key }) => key);
  return [keys(worse), keys(mended), keys(reminded)];
}

const table = (state: string) => ["table:a/r/fills", state] as const;
const nothing = [[], [], []];

describe("what is told", () => {
  test("once when it comes, once when it is mended, and nothing between", () => {
    const { told } = nights([[], [table("UNVERIFIED")], [table("UNVERIFIED")], []]);
    expect(told).toEqual([nothing, [["table:a/r/fills"], [], []], nothing, [[], ["table:a/r/fills"], []]]);
  });

  test("a reminder each week while it goes on", () => {
    const { told } = nights(Array.from({ length: 16 }, () => [table("INCOMPLETE")]));
    const reminded = told.flatMap(([, , again], number) => (again!.length > 0 ? [number] : []));
    expect(reminded).toEqual([7, 14]);
  });

  test("a state that falls further, but not one that falls to where it was before", () => {
    const { told } = nights(
      ["QUARANTINED", "INCOMPLETE", "QUARANTINED", "INCOMPLETE"].map((state) => [table(state)]),
    );
    expect(told.map(([worse]) => worse!.length)).toEqual([1, 1, 0, 0]);
  });

  test.each([
    ["a status that counts for more", "job", "4", "5", 1],
    ["a status that counts for less", "job", "5", "4", 0],
    ["fewer nights that the disk lasts for", "disk", "2", "1", 1],
    ["more of them", "disk", "1", "2", 0],
  ])("%s", (_, key, first, second, count) => {
    const { told } = nights([[[key, first]], [[key, second]]]);
    expect(told[1]![0]).toHaveLength(count);
  });

  test("again where nobody could be told, whether it came, grew worse or was mended", () => {
    const deaf: Heard = { worse: false, mended: false };
    const { told, kept } = nights(
      [[table("UNVERIFIED")], [table("UNVERIFIED")], [table("INCOMPLETE")], [table("INCOMPLETE")], [], []],
      (number) => (number % 2 === 0 ? deaf : heardAll),
    );
    expect(told.map(([worse, mended]) => [worse!.length, mended!.length])).toEqual([
      [1, 0],
      [1, 0],
      [1, 0],
      [1, 0],
      [0, 1],
      [0, 1],
    ]);
    expect(kept).toEqual([]);
  });

  test("a run that is gone once, in place of what was wrong with it, and never again", () => {
    const gone = ["gone:a/r", "gone"] as const;
    const { told } = nights([[table("INCOMPLETE")], ...Array.from({ length: 10 }, () => [gone]), []]);
    expect(told[1]).toEqual([["gone:a/r"], [], []]);
    expect(told.slice(2)).toEqual(Array.from({ length: 10 }, () => nothing));
  });

  test("a missed start and a died execution once; they are never mended", () => {
    const { told, kept } = nights([[["missed:2026-01-01", "missed"]], [["died:x", "died"]], []]);
    expect(told).toEqual([[["missed:2026-01-01"], [], []], [["died:x"], [], []], nothing]);
    expect(kept).toEqual([]);
  });

  test("a missed start the next time, where nobody could be told", () => {
    const { told } = nights([[["missed:t", "missed"]], [], []], (number) => ({
      worse: number > 0,
      mended: true,
    }));
    expect(told.map(([worse]) => worse)).toEqual([["missed:t"], ["missed:t"], []]);
  });

  test("what happened once is not kept for nobody", () => {
    const { kept } = nights([[["died:x", "died"], table("INCOMPLETE")]], () => ({
      worse: null,
      mended: null,
    }));
    expect(kept.map(({ key }) => key)).toEqual(["table:a/r/fills"]);
  });
});

const key = fc.constantFrom(
  ...["job", "disk", "table:a/r/fills", "table:a/r/orders", "run:a/r", "gone:a/r", "expiring:b/s", "died:x"],
);
const levelOf = (of: string) => {
  if (of.startsWith("table")) return fc.constantFrom(...tableStates);
  if (of === "disk") return fc.constantFrom("0", "1", "2", "3");
  return fc.constantFrom("3", "4", "5", "7");
};
const wrong = fc
  .uniqueArray(key, { maxLength: 6 })
  .chain((keys) => fc.tuple(...keys.map((one) => levelOf(one).map((level) => [one, level] as const))));
const heard = fc.record<Heard>({
  worse: fc.constantFrom(true, false, null),
  mended: fc.constantFrom(true, false, null),
});

describe("whatever the nights were", () => {
  test("the same again, all of it told, is nothing but reminders, and none before its time", () => {
    fc.assert(
      fc.property(fc.array(wrong, { maxLength: 8 }), wrong, (past, last) => {
        const { told } = nights([...past, last, last]);
        expect(told.at(-1)!.slice(0, 2)).toEqual([[], []]);
        if (past.length === 0) expect(told.at(-1)).toEqual(nothing);
      }),
    );
  });

  test("each key is in one list at most, what is wrong is kept under its key, and nothing else is but what waits", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(wrong, heard), { minLength: 1, maxLength: 8 }), (all) => {
        const { told, kept } = nights(
          all.map(([one]) => one),
          (number) => all[number]![1],
        );
        for (const changes of told) {
          const keys = changes.flat();
          expect(new Set(keys).size).toBe(keys.length);
        }
        const last = all.at(-1)![0].map(([one]) => one);
        const keptKeys = kept.map((one) => one.key);
        expect(new Set(keptKeys).size).toBe(keptKeys.length);
        const [, nobody] = all.at(-1)!;
        for (const one of last) {
          if (nobody.worse === null && one.startsWith("died")) continue;
          expect(keptKeys).toContain(one);
        }
        for (const one of kept) {
          if (last.includes(one.key)) expect(one.mended).toBeNull();
          else expect(one.mended !== null || one.kind === "died").toBe(true);
        }
      }),
    );
  });

  test("nothing is lost: what comes is told in its night or, where nobody could be, in one that somebody hears", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }), wrong, (ears, last) => {
        const all = ears.map(() => last);
        const { told } = nights(all, (number) => ({ worse: ears[number]!, mended: ears[number]! }));
        const first = ears.indexOf(true);
        for (const [one] of last) {
          const nightsTold = told.flatMap(([worse], number) => (worse!.includes(one) ? [number] : []));
          const until = first < 0 ? ears.length - 1 : first;
          expect(nightsTold).toEqual(Array.from({ length: until + 1 }, (_, number) => number));
        }
      }),
    );
  });
});
