import { expect, test } from "vitest";
import { Disposables } from "../../src/model/disposables.ts";

test("disposes of the newest first, of each once, and of nothing that was moved", async () => {
  const seen: string[] = [];
  const one = (name: string) => ({ [Symbol.asyncDispose]: async () => void seen.push(name) });
  const all = new Disposables();
  all.use(one("a"));
  all.defer(() => void seen.push("b"));
  const moved = all.move();
  all.use(one("c"));
  await all[Symbol.asyncDispose]();
  await all[Symbol.asyncDispose]();
  expect(seen).toEqual(["c"]);
  await moved[Symbol.asyncDispose]();
  expect(seen).toEqual(["c", "b", "a"]);
});

test("an error keeps nothing from being disposed of", async () => {
  const seen: string[] = [];
  const all = new Disposables();
  all.defer(() => void seen.push("a"));
  all.defer(() => {
    throw new Error("first");
  });
  all.defer(async () => {
    throw new Error("newest");
  });
  await expect(all[Symbol.asyncDispose]()).rejects.toThrow("newest");
  expect(seen).toEqual(["a"]);
});
