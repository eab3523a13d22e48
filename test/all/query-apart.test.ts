import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { start } from "../fixtures/command/command-process.ts";
import { isAlive, peakMib } from "../fixtures/command/process-tree.ts";
import { deaf, openQueried, queried, query, working } from "../fixtures/command/query-process.ts";

openQueried();

describe("a statement that takes more than it may", () => {
  it.each([
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
    expect(await readdir(queried.temporary)).toEqual([]);
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
});

describe("the process of a statement", () => {
  it("ends with its command at SIGINT, whatever it does", async () => {
    const { child, finished } = query(deaf);
    const own = await working(child.pid!);
    child.kill("SIGINT");
    expect((await finished).status).toBe(130);
    expect(isAlive(own)).toBe(false);
    expect(await readdir(queried.temporary)).toEqual([]);
  });

  it("dies of a signal that a terminal sends to both: then the command was interrupted", async () => {
    const { child, finished } = query(deaf);
    const own = await working(child.pid!);
    process.kill(own, "SIGINT");
    expect((await finished).status).toBe(130);
  });

  it("that fails ahead of the statement is told, with why on request", async () => {
    const broken = join(queried.temporary, "broken.mjs");
    await writeFile(broken, 'if (process.argv[1].includes("apart")) throw new Error("no library here");');
    const more = { TMPDIR: queried.temporary, NODE_OPTIONS: `--import=${broken}` };
    const { finished } = start(["query", "--archive", queried.archive, "--debug", "SELECT 1"], more);
    const { status, stdout, stderr } = await finished;
    await rm(broken);
    expect({ status, stdout }, stderr).toEqual({ status: 1, stdout: "" });
    expect(stderr).toMatch(/^runvault: internal: the query's process ended with status 1\n/);
    expect(stderr).toContain("no library here");
  });

  it("says what to do where there is no temporary folder", async () => {
    const { status, stderr } = await start(["query", "--archive", queried.archive, "SELECT 1"], {
      TMPDIR: join(queried.temporary, "none"),
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
