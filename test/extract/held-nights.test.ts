// @module-tag slow
import fc from "fast-check";
import { expect, it } from "vitest";
import { exitOfRun } from "../../src/extract/run/exit-of-run.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import { reportOf } from "../fixtures/archive/archived-world.ts";
import { servedLines } from "../fixtures/archive/served-lines.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { type ArrayRow, ArraySource, type Manners } from "../fixtures/source/array-source.ts";
import { isTestAll } from "../fixtures/trials/cases.ts";

const most = 45;
const all = world({ fills: hours(most) }).get("fills")!;
const orders = world({ orders: hours(most) }).get("orders")!;

/** One night: how many of the oldest fills the gateway has dropped, how many came in all, and what goes wrong. */
const nights = fc.array(
  fc.record({
    dropped: fc.nat(6),
    came: fc.nat(15),
    /** From which hour on fills are refused; null: none are. */
    refusedFrom: fc.option(fc.nat(most)),
    /** The answer of the fills' route behind which more of the oldest are dropped; null: none are. */
    movesAfter: fc.option(fc.integer({ min: 1, max: 6 })),
    /** A proof that the gateway cannot give: all comes, and nothing is proven. */
    isWeak: fc.boolean(),
    /** A row that the gateway has from this night on, far ahead of the others. */
    isLate: fc.boolean(),
    /** The step of the job at which it is killed, and begun again; null: it is not. */
    killedAt: fc.option(fc.integer({ min: 1, max: 40 }), { freq: 3 }),
  }),
  { minLength: 2, maxLength: 5 },
);

it("whatever a gateway drops from night to night, no row that was ever here is gone from what --allow-incomplete shows", async () => {
  await fc.assert(
    fc.asyncProperty(nights, fc.boolean(), fc.boolean(), async (nights, literal, isGrowing) => {
      await using tables = await TableWorld.create();
      let [first, end] = [0, 10];
      // comes late
      let isThere = (row: ArrayRow) => row !== all[2];
      let ever = new Set<string>();
      let proven = new Set<string>();
      for (const [index, night] of nights.entries()) {
        first = Math.min(first + night.dropped, most);
        end = Math.min(end + night.came, most);
        if (night.isLate) isThere = () => true;
        const fills = () => all.slice(first, end).filter(isThere);
        const source = new ArraySource(
          run,
          new Map<TableName, ArrayRow[]>([
            ["fills", fills()],
            ["orders", orders],
          ]),
        );
        let answers = 0;
        const refuses: Manners["refuses"] = ({ table, from, limit }) => {
          if (table !== "fills") return undefined;
          if (++answers === night.movesAfter) {
            first = Math.min(first + 4, end);
            source.tables.set("fills", fills());
          }
          const isRefused = night.refusedFrom !== null && from !== undefined && from >= at(night.refusedFrom);
          return isRefused && limit !== 1 ? new RunvaultError("server_error", "no luck") : undefined;
        };
        source.manners = { literal, refuses, final: !isGrowing || index === nights.length - 1 };
        source.storageVersion = String(index);
        const settings = { require: night.isWeak ? ("hashed" as const) : ("any" as const) };
        let steps = 0;
        const step = () => {
          if (++steps === night.killedAt) throw new Error("killed");
        };
        // a job that is killed, or had fewer steps, is followed by one that goes on
        await tables
          .archiveRun(source, { settings, step })
          .catch(({ message }) => expect(message).toBe("killed"));
        const { manifest } = await tables.archiveRun(source, { settings });
        const { damaged } = await reportOf(tables.archive, run);
        expect(damaged).toBe(false);

        const table = manifest.tables.fills!;
        const [held, shown] = await Promise.all(
          [true, false].map((allowIncomplete) => servedLines(tables, "fills", { allowIncomplete })),
        );
        const parquet = await servedLines(tables, "fills", { allowIncomplete: true, fromParquet: true });
        expect(parquet).toEqual(held);
        expect(new Set(held).size).toBe(held!.length);
        for (const line of [...ever, ...shown!]) expect(held).toContain(line);
        for (const line of proven) expect(shown).toContain(line);
        ever = new Set(held);
        proven = new Set(shown);
        const isOk = table.attempt.outcome === "ok";
        expect(exitOfRun(manifest, { tables: ["fills"] }) === 0).toBe(isOk);
        // what is here and not proven is held beside it, and what is gone there has been told
        expect(isOk && table.attempt.holding !== null).toBe(isOk && held!.length > shown!.length);
        if (isOk && table.attempt.holding !== null) {
          expect(table.attempt.notes.join()).toContain(`${held!.length - shown!.length} row`);
        }
      }
    }),
    { numRuns: isTestAll ? 15 : 3 },
  );
});
