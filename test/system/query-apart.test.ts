import { spawn } from "node:child_process";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { watchResident } from "../../src/cli/apart/watch-resident.ts";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { start } from "../fixtures/command/command-process.ts";
import { childrenOf, isAlive, peakMib } from "../fixtures/command/process-tree.ts";

let built: Awaited<ReturnType<typeof buildArchive>>;
let temporary: string;
beforeAll(async () => {
  built = await buildArchive([
    { instanceId: "a", runId: "1", tables: { fills: { state: "COMPLETE", rows: 3 } } },
  ]);
  temporary = await mkdtemp(join(tmpdir(), "runvault-test-"));
});
afterAll(async () => {
  await built.dispose();
  await rm(temporary, { recursive: true, force: true });
});

const query = (sql: string, ...more: string[]) =>
  start(["query", "--archive", built.dir, "--memory", "256MB", ...more, sql], { TMPDIR: temporary });

/** Goes on for minutes without memory, and does not listen to DuckDB's interrupt. */
const deaf = "SELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000))";

describe("a statement that takes more than it may", () => {
  it.each([
    ["a list of a billion numbers", "SELECT list_sum(range(1000000000))"],
    ["a text of two gigabytes", "SELECT length(repeat('x', 2000000000))"],
    [
      "a list that grows by lists",
      "SELECT list_aggregate(flatten([range(200000000), range(200000000)]), 'sum')",
    ],
  ])("%s ends within the limit, as an error of the statement", async (_, sql) => {
    const { child, finished } = query(sql);
    const peak = await peakMib(child.pid!, finished);
    const { status, stdout, stderr } = await finished;
    expect({ status, stdout }, stderr).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(/^runvault: query_invalid: /);
    expect(stderr).toContain("raise --memory");
    // twice --memory, what the process holds without a statement, and the threads
    expect(peak).toBeLessThan(2 * 256 + 730 + 4 * 16);
    expect(await readdir(temporary)).toEqual([]);
  });

  it.each([
    ["groups", "SELECT count(*) FROM (SELECT md5(i::VARCHAR), count(*) FROM range(4000000) t(i) GROUP BY 1)"],
    [
      "a window",
      "SELECT count(n) FROM (SELECT row_number() OVER (ORDER BY md5(i::VARCHAR)) AS n FROM range(4000000) t(i))",
    ],
  ])("%s that do not fit into --memory spill to disk, and end well", async (_, sql) => {
    const { status, stdout, stderr } = await query(sql, "--memory", "100MB", "-f", "csv").finished;
    expect({ status, answer: stdout.split("\n")[1] }, stderr).toEqual({ status: 0, answer: "4000000" });
  });

  it("one that crashes DuckDB is told as an error of the statement, with nothing left behind", async () => {
    const nested = "SELECT json_structure(repeat('[', 3000000) || repeat(']', 3000000))";
    const { status, stdout, stderr } = await query(nested).finished;
    expect({ status, stdout }, stderr).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(/^runvault: query_invalid: the query crashed DuckDB \(SIG[A-Z]+\)\n {2}hint: /);
    expect(await readdir(temporary)).toEqual([]);
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
    expect(await readdir(temporary)).toEqual([]);
  });
});

describe("the process of a statement", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("ends with its command at %s, whatever it does", async (signal, status) => {
    const { child, finished } = query(deaf);
    const [own] = await working(child.pid!);
    child.kill(signal);
    expect((await finished).status).toBe(status);
    expect(isAlive(own!)).toBe(false);
    expect(await readdir(temporary)).toEqual([]);
  });

  it("ends, with its temporary folder, when its command was killed", async () => {
    const { child, finished } = query(deaf);
    const [own] = await working(child.pid!);
    child.kill("SIGKILL");
    await finished;
    await expect.poll(() => isAlive(own!)).toBe(false);
    await expect.poll(() => readdir(temporary)).toEqual([]);
  });

  it("dies of a signal that a terminal sends to both: then the command was interrupted", async () => {
    const { child, finished } = query(deaf);
    const [own] = await working(child.pid!);
    process.kill(own!, "SIGINT");
    expect((await finished).status).toBe(130);
  });

  it("that fails ahead of the statement is told, with why on request", async () => {
    const broken = join(temporary, "broken.mjs");
    await writeFile(broken, 'if (process.argv[1].includes("apart")) throw new Error("no library here");');
    const more = { TMPDIR: temporary, NODE_OPTIONS: `--import=${broken}` };
    const { finished } = start(["query", "--archive", built.dir, "--debug", "SELECT 1"], more);
    const { status, stdout, stderr } = await finished;
    await rm(broken);
    expect({ status, stdout }, stderr).toEqual({ status: 1, stdout: "" });
    expect(stderr).toMatch(/^runvault: internal: the query's process ended with status 1\n/);
    expect(stderr).toContain("no library here");
  });

  it("says what to do where there is no temporary folder", async () => {
    const { status, stderr } = await start(["query", "--archive", built.dir, "SELECT 1"], {
      TMPDIR: join(temporary, "none"),
    }).finished;
    expect(status).toBe(7);
    expect(stderr).toContain("hint: Set TMPDIR to a writable folder");
  });

  it("says what it has to say in the form that was asked for", async () => {
    const { status, stderr } = await query("SELECT nothing FROM fills", "--json").finished;
    expect({ status, error: JSON.parse(stderr).error }).toMatchObject({
      status: 2,
      error: { code: "query_invalid", exit: 2 },
    });
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

/** The process that works for this one, once it does. */
async function working(pid: number): Promise<number[]> {
  await expect.poll(() => childrenOf(pid).length).toBe(1);
  // loaded, opened, and at its statement
  await sleep(1_500);
  return childrenOf(pid);
}
