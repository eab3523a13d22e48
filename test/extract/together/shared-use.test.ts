import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { SharedUse } from "../../../src/extract/together/shared-use.ts";

test("many share it side by side, one at a time has it alone, and those behind wait", async () => {
  const use = new SharedUse();
  const steps: string[] = [];
  const work = (name: string, ms: number) => async () => {
    steps.push(`+${name}`);
    await setTimeout(ms);
    steps.push(`-${name}`);
    return name;
  };
  const all = [
    use.shared(work("a", 10)),
    use.shared(work("b", 4)),
    use.alone(work("C", 4)),
    use.alone(work("D", 1)),
    use.shared(work("e", 4)),
    use.shared(work("f", 1)),
  ];
  expect(await Promise.all(all)).toEqual(["a", "b", "C", "D", "e", "f"]);
  expect(steps).toEqual(["+a", "+b", "-b", "-a", "+C", "-C", "+D", "-D", "+e", "+f", "-f", "-e"]);
});

test("a use that fails leaves it free", async () => {
  const use = new SharedUse();
  const fail = async () => {
    throw new Error("failed");
  };
  await expect(use.shared(fail)).rejects.toThrow("failed");
  await expect(use.alone(fail)).rejects.toThrow("failed");
  expect(await use.alone(async () => 1)).toBe(1);
  expect(await use.shared(async () => 2)).toBe(2);
});
