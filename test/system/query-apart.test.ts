import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { watchResident } from "../../src/cli/apart/watch-resident.ts";
import { isAlive, peakMib } from "../fixtures/command/process-tree.ts";
import { deaf, openQueried, queried, query, working } from "../fixtures/command/query-process.ts";

openQueried();

// test/all/query-apart.test.ts has more statements, and more that a process says
describe("a statement that takes more than it may", () => {
  it.each([["a list of a billion numbers", "SELECT list_sum(range(1000000000))"]])(
    "%s ends within the limit, as an error of the statement",
    async (_, sql) => {
      const { child, finished } = query(sql);
      const peak = await peakMib(child.pid!, finished);
      const { status, stdout, stderr } = await finished;
      expect({ status, stdout }, stderr).toEqual({ status: 2, stdout: "" });
      expect(stderr).toMatch(/^runvault: query_invalid: /);
      expect(stderr).toContain("raise --memory");
      // twice --memory, what the process holds without a statement, and the threads
      expect(peak).toBeLessThan(2 * 256 + 730 + 4 * 16);
      expect(await readdir(queried.temporary)).toEqual([]);
    },
  );

  it("one that crashes DuckDB is told as an error of the statement, with nothing left behind", async () => {
    const nested = "SELECT json_structure(repeat('[', 3000000) || repeat(']', 3000000))";
    const { status, stdout, stderr } = await query(nested).finished;
    expect({ status, stdout }, stderr).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(/^runvault: query_invalid: the query crashed DuckDB \(SIG[A-Z]+\)\n {2}hint: /);
    expect(await readdir(queried.temporary)).toEqual([]);
  });

  it("one that does not listen is killed two seconds behind its time", async () => {
    const started = performance.now();
    const { status, stderr } = await query(deaf, "--timeout", "1s").finished;
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr:
        "runvault: query_invalid: the query took longer than 1 s\n  hint: Narrow the query, or raise --timeout (RUNVAULT_TIMEOUT).\n",
    });
    expect(performance.now() - started).toBeGreaterThan(2_900);
    expect(await readdir(queried.temporary)).toEqual([]);
  });
});

describe("the process of a statement", () => {
  it("ends with its command at SIGTERM, whatever it does", async () => {
    const { child, finished } = query(deaf);
    const own = await working(child.pid!);
    child.kill("SIGTERM");
    expect((await finished).status).toBe(143);
    expect(isAlive(own)).toBe(false);
    expect(await readdir(queried.temporary)).toEqual([]);
  });

  it("ends, with its temporary folder, when its command was killed", async () => {
    const { child, finished } = query(deaf);
    const own = await working(child.pid!);
    child.kill("SIGKILL");
    await finished;
    await expect.poll(() => isAlive(own)).toBe(false);
    await expect.poll(() => readdir(queried.temporary)).toEqual([]);
  });
});

it("what holds more than it may is noticed where the system sets no limit", async () => {
  const child = spawn(process.execPath, [
    "-e",
    "const held = Buffer.alloc(300 * 2 ** 20, 1); setInterval(() => held.length, 1000)",
  ]);
  const more = Promise.withResolvers<"more">();
  using _ = watchResident(child, 200 * 2 ** 20, () => more.resolve("more"));
  expect(await Promise.race([more.promise, sleep(30_000, "nothing", { ref: false })])).toBe("more");
  child.kill("SIGKILL");
});
