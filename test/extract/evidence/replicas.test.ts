// @module-tag slow
import { expect, it } from "vitest";
import type { HistorySource } from "../../../src/model/source.ts";
import { hours, run, TableWorld, world } from "../../fixtures/archive/table-world.ts";
import { ArraySource, type Manners } from "../../fixtures/source/array-source.ts";
import { trialCount, trialSeed } from "../../fixtures/trials/trials.ts";

const kinds = ["by turn", "random", "by connection"] as const;
const seed = trialSeed;
const times = trialCount(3);

it.each(kinds.flatMap((kind) => [true, false].map((hasFacts) => ({ kind, hasFacts }))))(
  "nodes with other rows, $kind, facts: $hasFacts: nothing is called whole that lacks what the command was told of or sent",
  async ({ kind, hasFacts }) => {
    for (let number = 0; number < times; number++) {
      const random = mulberry(seed + number * 7919 + kinds.indexOf(kind));
      await using tables = await TableWorld.create();
      const manners: Manners = { literal: !hasFacts };
      const whole = new ArraySource(run, world({ fills: hours(60), orders: hours(40) }), manners);
      const lacking = new ArraySource(run, world({ fills: hours(60), orders: hours(40) }), manners);
      const rows = lacking.tables.get("fills")!;
      const gone = new Set(Array.from({ length: 1 + random(6) }, () => random(60)));
      lacking.tables.set(
        "fills",
        rows.filter((_, at) => !gone.has(at)),
      );
      let turn = 0;
      let node = random(2);
      /** The most that the command was told of or sent, and that any was. */
      let most = 0;
      let ever = 0;
      let isWholeThere = true;
      const pick = (): ArraySource => {
        if (kind === "by turn") node = ++turn % 2;
        if (kind === "random") node = random(2);
        return node === 0 && isWholeThere ? whole : lacking;
      };
      const source: HistorySource = {
        label: "two nodes",
        instances: () => pick().instances(),
        runs: (id) => pick().runs(id),
        facts: async (ref, bounds, signal, asked) => {
          const facts = await pick().facts(ref, bounds, signal, asked);
          most = Math.max(most, Number(facts?.get("fills")?.rows ?? 0n));
          return facts;
        },
        document: (ref, document) => pick().document(ref, document),
        async *rows(request) {
          let lines = 0;
          for await (const chunk of pick().rows(request)) {
            lines += Buffer.from(chunk).toString().split("\n").length - 1;
            yield chunk;
          }
          if (request.table === "fills") most = Math.max(most, lines);
        },
        reconnect: () => {
          node = random(2);
        },
        [Symbol.asyncDispose]: async () => {},
      };
      for (let night = 1; night <= 3; night++) {
        if (night > 1 && random(3) === 0) isWholeThere = false;
        most = 0;
        const { manifest } = await tables.archiveRun(whole, { source });
        ever = Math.max(ever, most);
        const { proven, attempt } = manifest.tables.fills!;
        const rows = proven?.certificate?.rows ?? 0;
        const of = `${kind} ${number}, night ${night}: told of or sent ${most}, ever ${ever}; ${JSON.stringify(attempt.notes)}`;
        // a job that finds the run unchanged is told of nothing new
        if (proven === null) expect(attempt.outcome, of).not.toBe("ok");
        else if (attempt.outcome === "ok") {
          expect(rows, of).toBeGreaterThanOrEqual(most);
          if (rows < ever) expect(attempt.notes.join(), of).toMatch(/an earlier attempt saw \d+ rows/);
        }
      }
    }
  },
);

function mulberry(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}
