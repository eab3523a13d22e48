import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { Gathering } from "../../../src/extract/together/gathering.ts";

const echo = (acts: number[][]) => async (items: readonly number[]) => {
  acts.push([...items]);
  return items.map((item) => () => item * 10);
};

test("acts on all who wait once they weigh enough, each with a result of its own", async () => {
  const acts: number[][] = [];
  const gathering = new Gathering(echo(acts), { most: 5, weightOf: (item) => item, pauseMs: () => 60_000 });
  expect(await Promise.all([1, 3, 1].map((item) => gathering.join(item)))).toEqual([10, 30, 10]);
  expect(acts).toEqual([[1, 3, 1]]);
});

test("acts when nobody else came for the pause, which is asked for anew when it hurries", async () => {
  const acts: number[][] = [];
  let pause = 60_000;
  const gathering = new Gathering(echo(acts), { most: 10, pauseMs: () => pause });
  const joined = [1, 2].map((item) => gathering.join(item));
  await setTimeout(5);
  expect(acts).toEqual([]);
  pause = 1;
  gathering.hurry();
  expect(await Promise.all(joined)).toEqual([10, 20]);
  expect(acts).toEqual([[1, 2]]);
});

test("who comes while it acts is of the next act", async () => {
  const acts: number[][] = [];
  const held = Promise.withResolvers<void>();
  const gathering = new Gathering(
    async (items: readonly number[]) => {
      acts.push([...items]);
      await held.promise;
      return items.map((item) => () => item);
    },
    { most: 2, pauseMs: () => 1 },
  );
  const joined = [1, 2, 3, 4, 5].map((item) => gathering.join(item));
  await setTimeout(10);
  held.resolve();
  expect(await Promise.all(joined)).toEqual([1, 2, 3, 4, 5]);
  expect(acts).toEqual([
    [1, 2],
    [3, 4, 5],
  ]);
});

test("who stops waiting is not acted on; who is acted on by then waits for the end", async () => {
  const acts: number[][] = [];
  const held = Promise.withResolvers<void>();
  const gathering = new Gathering(
    async (items: readonly number[]) => {
      acts.push([...items]);
      await held.promise;
      return items.map((item) => () => item);
    },
    { most: 2, pauseMs: () => 1 },
  );
  const early = new AbortController();
  const late = new AbortController();
  const left = gathering.join(1, early.signal);
  early.abort(new Error("left"));
  await expect(left).rejects.toThrow("left");
  const stays = gathering.join(2, late.signal);
  const other = gathering.join(3);
  await setTimeout(10);
  late.abort(new Error("late"));
  held.resolve();
  expect(await Promise.all([stays, other])).toEqual([2, 3]);
  expect(acts).toEqual([[2, 3]]);
  await expect(gathering.join(4, late.signal)).rejects.toThrow("late");
});

test("an act that fails fails for all of it, a result that throws for its own; the next goes on", async () => {
  let fails = true;
  const gathering = new Gathering(
    async (items: readonly number[]) => {
      if (fails) throw new Error("all");
      return items.map((item) => () => {
        if (item === 1) throw new Error("one");
        return item;
      });
    },
    { most: 2, pauseMs: () => 1 },
  );
  const both = await Promise.allSettled([gathering.join(1), gathering.join(2)]);
  expect(both.map((outcome) => outcome.status === "rejected" && outcome.reason.message)).toEqual([
    "all",
    "all",
  ]);
  fails = false;
  const next = await Promise.allSettled([gathering.join(1), gathering.join(2)]);
  expect(next).toMatchObject([{ status: "rejected", reason: { message: "one" } }, { value: 2 }]);
});
