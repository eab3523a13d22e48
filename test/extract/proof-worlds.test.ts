// @module-tag slow
import fc from "fast-check";
import { expect, test } from "vitest";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { type TableName, tableNames } from "../../src/model/profile/table.ts";
import { segmentLines } from "../fixtures/archive/archived-lines.ts";
import { at, hours, run, TableWorld } from "../fixtures/archive/table-world.ts";
import { type ArrayRow, ArraySource, type Manners, rowsAt } from "../fixtures/source/array-source.ts";
import { isTestAll } from "../fixtures/trials/cases.ts";
import { trialCount } from "../fixtures/trials/trials.ts";

const day = 86_400_000_000_000n;
const names: readonly TableName[] = ["fills", "bars", "factors", "metrics"];

/** What a table is filled with: rows one after another, several a timestamp, one timestamp of many, or none. */
const filling = fc.oneof(
  { weight: 3, arbitrary: fc.constant<number[]>([]) },
  { weight: 4, arbitrary: fc.array(fc.integer({ min: 0, max: 47 }), { minLength: 1, maxLength: 60 }) },
  { weight: 2, arbitrary: fc.integer({ min: 2, max: 40 }).map((count) => Array<number>(count).fill(48)) },
  { weight: 1, arbitrary: fc.constant(hours(48)) },
);

/** Ways to answer that lose no row for who asks well: an alarm is as wrong as a loss is elsewhere. */
const honest: readonly Manners[] = [
  {},
  { unknownRuns: "empty" },
  { longestNs: 31n * day, longer: "refused" },
  { longestNs: 31n * day, longer: "cutDown" },
  { int64IsNoTime: true },
  { defaultWindowNs: 40n * 3_600_000_000_000n },
];

// two rows at least: of answers of one row, where each table is one timestamp, nothing tells that a cap ended them
const rowCap = fc.integer({ min: 2, max: 70 });
const hostile: fc.Arbitrary<Manners> = fc.oneof(
  rowCap.map((cap) => ({ cap })),
  rowCap.map((cap) => ({ cap, capKeeps: "newest" as const })),
  fc.integer({ min: 1_200, max: 40_000 }).map((capBytes) => ({ capBytes })),
  fc.constantFrom(...names).map((name) => ({ deadRoutes: [name] })),
  fc.constantFrom(2n, 10n, 30n).map((n) => ({ defaultWindowNs: n * 3_600_000_000_000n })),
  fc.constantFrom(1n, 24n).map((n) => ({ longestNs: n * 3_600_000_000_000n, longer: "cutDown" as const })),
  fc.constant({
    refuses: ({ limit }: { limit?: number | undefined }) =>
      limit === 1 ? new RunvaultError("limit_exceeded", "too few") : undefined,
  }),
);

/** A run of two days, rows as `fill` says, and what comes of archiving it. */
async function archived(
  fill: readonly (readonly number[])[],
  manners: Manners,
  routes: readonly TableName[],
) {
  await using tables = await TableWorld.create();
  const rows = new Map<TableName, ArrayRow[]>(
    names.map((name, i) => [name, rowsAt(run, name, [...fill[i]!].sort((a, b) => a - b).map(at))]),
  );
  const source = new ArraySource(run, rows, { times: { started: at(0), ended: at(48) }, ...manners });
  const seen = new SeenSource({ routes, empty: {} });
  const { manifest } = await tables.archiveRun(source, { seen });
  const outcomes = names.map(async (name) => ({
    name,
    state: manifest.tables[name]!.state,
    error: manifest.tables[name]!.attempt.error?.message,
    isWhole:
      (await segmentLines(tables.archive, run, name)).join() ===
      rows
        .get(name)!
        .map(({ line }) => line)
        .join(),
  }));
  return await Promise.all(outcomes);
}

const fillings = fc.tuple(filling, filling, filling, filling);

test("no table of a gateway that caps, cuts down, refuses or forgets is COMPLETE with other rows than there are", async () => {
  await fc.assert(
    fc.asyncProperty(
      fillings,
      hostile,
      fc.constantFrom(...honest),
      fc.boolean(),
      async (fill, bad, good, literal) => {
        // a dead route that gave rows once is told from an empty table by nothing but counts
        const routes = tableNames.filter((name) => !bad.deadRoutes?.includes(name));
        for (const outcome of await archived(fill, { ...good, ...bad, literal }, routes)) {
          expect(outcome.state === "COMPLETE" && !outcome.isWhole, JSON.stringify(outcome)).toBe(false);
        }
      },
    ),
    {
      numRuns: isTestAll ? 20 : trialCount(8),
      // rows at the beginning of the run, which neither an open bound nor a day's window from its rung on shows
      examples: [
        [
          [[0], [0], [0], [48, 48]],
          { longestNs: day, longer: "cutDown" },
          { defaultWindowNs: 40n * 3_600_000_000_000n },
          true,
        ],
      ],
    },
  );
});

test("every table of an honest gateway is COMPLETE that other answers say something about", async () => {
  await fc.assert(
    fc.asyncProperty(fillings, fc.constantFrom(...honest), fc.boolean(), async (fill, manners, literal) => {
      // where nothing counts rows: a known row to try bounds on, and an answer larger than one timestamp's
      const known = literal ? [hours(48).concat(hours(48)), ...fill.slice(1)] : fill;
      for (const outcome of await archived(known, { ...manners, literal }, tableNames)) {
        expect(outcome).toMatchObject({ state: "COMPLETE", isWhole: true });
      }
    }),
    { numRuns: isTestAll ? 20 : trialCount(8) },
  );
});
