import { setTimeout } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Flight, inFlight } from "../../../src/extract/together/in-flight.ts";

async function all<T, R>(flights: AsyncGenerator<T, R>): Promise<{ yielded: T[]; returned: R }> {
  const yielded: T[] = [];
  for (;;) {
    const next = await flights.next();
    if (next.done) return { yielded, returned: next.value };
    yielded.push(next.value);
  }
}

describe("any flights", () => {
  test("keep to their lanes, begin in their order, and are all told once", async () => {
    const flight = fc.record({
      ms: fc.integer({ min: 0, max: 4 }),
      leaves: fc.boolean(),
      opens: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(flight, { maxLength: 12 }),
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 5 }),
        async (items, lanes, alive) => {
          const begun: number[] = [];
          let inLane = 0;
          let flying = 0;
          const work = async (
            item: (typeof items)[number],
            index: number,
            { leaveLane, openLanes }: Flight,
          ) => {
            begun.push(index);
            inLane++;
            flying++;
            expect(inLane).toBeLessThanOrEqual(lanes);
            expect(flying).toBeLessThanOrEqual(alive);
            await setTimeout(item.ms);
            if (item.opens) openLanes();
            if (item.leaves) leaveLane();
            inLane--;
            await setTimeout(item.ms);
            if (!item.leaves) expect(inLane).toBeLessThan(lanes);
            flying--;
            return index;
          };
          const { yielded, returned } = await all(inFlight(items, { lanes, alive }, work));
          expect(yielded.map(({ result }) => result)).toEqual(items.map((_, index) => index));
          expect(begun).toEqual(items.map((_, index) => index));
          expect(returned).toBe(items.length);
        },
      ),
      { numRuns: 60 },
    );
  });
});

test("the first is alone until it opens the lanes, or lands", async () => {
  const begun: number[] = [];
  const gates = [0, 1, 2].map(() => Promise.withResolvers<void>());
  const open: (() => void)[] = [];
  const work = async (item: number, _index: number, { openLanes }: Flight) => {
    begun.push(item);
    open.push(openLanes);
    await gates[item]!.promise;
    return item;
  };
  const done = all(inFlight([0, 1, 2], { lanes: 3, alive: 3 }, work));
  await setTimeout(5);
  expect(begun).toEqual([0]);
  open[0]!();
  await setTimeout(5);
  expect(begun).toEqual([0, 1, 2]);
  for (const { resolve } of gates) resolve();
  expect((await done).returned).toBe(3);
});

test("none is begun once none may be, and those under way are told; says when none is to come", async () => {
  let may = true;
  const last: boolean[] = [];
  const work = async (item: number) => {
    if (item === 2) may = false;
    await setTimeout(2);
    return item;
  };
  const flights = inFlight(
    [0, 1, 2, 3, 4],
    { lanes: 1, alive: 2 },
    work,
    () => may,
    (is) => last.push(is),
  );
  const { yielded, returned } = await all(flights);
  expect(yielded.map(({ item }) => item)).toEqual([0, 1, 2]);
  expect(returned).toBe(3);
  expect(last.at(-1)).toBe(true);
});

test("one that is long about does not keep back more than 64 others", async () => {
  const gate = Promise.withResolvers<void>();
  const items = Array.from({ length: 100 }, (_, index) => index);
  const work = async (item: number, _index: number, { openLanes }: Flight) => {
    openLanes();
    if (item === 0) await gate.promise;
    return item;
  };
  const told: number[] = [];
  for await (const { item } of inFlight(items, { lanes: 2, alive: 2 }, work)) {
    told.push(item);
    if (told.length === 35) gate.resolve();
  }
  expect(told.slice(0, 35)).toEqual(items.slice(1, 36));
  expect(told.toSorted((a, b) => a - b)).toEqual(items);
});

test("who stops listening waits for what is under way", async () => {
  let landed = 0;
  const work = async (item: number, _index: number, { openLanes }: Flight) => {
    openLanes();
    await setTimeout(item === 0 ? 0 : 20);
    landed++;
    return item;
  };
  for await (const _ of inFlight([0, 1, 2, 3], { lanes: 3, alive: 3 }, work)) break;
  expect(landed).toBeGreaterThanOrEqual(3);
});
