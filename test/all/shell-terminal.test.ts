import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { start } from "../fixtures/command/command-process.ts";
import { childrenOf, isAlive } from "../fixtures/command/process-tree.ts";
import { builtMain, inProject } from "../fixtures/command/project.ts";
import { requires } from "../fixtures/command/requirement.ts";

let built: Awaited<ReturnType<typeof buildArchive>>;
let folder: string;
beforeAll(async () => {
  built = await buildArchive([
    { instanceId: "a", runId: "1", tables: { fills: { state: "COMPLETE", rows: 3 } } },
  ]);
  folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
});
afterAll(async () => {
  await built.dispose();
  await rm(folder, { recursive: true, force: true });
});

const prompt = "runvault> ";

/** What a terminal of 80 columns shows of a command while keys are typed, each once a text is seen. */
function typed(
  args: readonly string[],
  steps: readonly (readonly [string, string])[],
  history = join(folder, "state", "history"),
) {
  const argv = [process.execPath, builtMain, ...args, "--archive", built.dir];
  const env = { TMPDIR: folder, RUNVAULT_HISTORY: history };
  const { stdout, stderr } = spawnSync("python3", [inProject("test/fixtures/command/terminal-session.py")], {
    input: JSON.stringify({ argv, env, columns: 80, steps }),
    encoding: "utf8",
  });
  if (stdout === "") throw new Error(stderr);
  const { status, seen, missing } = JSON.parse(stdout) as { status: number; seen: string; missing?: string };
  expect(missing, seen).toBeUndefined();
  return { status, seen };
}

describe.skipIf(!requires("python"))("the shell on a terminal", () => {
  test("answers, completes, keeps what was typed, and leaves by Ctrl-D", async () => {
    const { status, seen } = typed(
      ["shell"],
      [
        [prompt, "SELECT count(*) AS n\r"],
        ["...> ", "FROM fill\t;\r"],
        ["(1 row, ", ""],
        [prompt, "SELECT tra\t FROM fills LIMIT 1;\r"],
        ["trade_id", ""],
        ["(1 row, ", ""],
        [prompt, ".sch\t runs\r"],
        ["committed_at", ""],
        [prompt, "SELECT nope;\r"],
        ["query_invalid", ""],
        [prompt, "\x04"],
      ],
    );
    expect(status).toBe(0);
    expect(seen).toContain("n\n-\n3\n");
    const history = join(folder, "state", "history");
    expect(await readFile(history, "utf8")).toContain("SELECT trade_id FROM fills LIMIT 1;\n");
    expect((await stat(history)).mode & 0o777).toBe(0o600);
    const again = typed(
      ["shell"],
      [
        [prompt, "\x1b[A\x1b[A\x1b[A\r"],
        ["(1 row, ", ""],
        [prompt, "\x04"],
      ],
    );
    expect(again.seen).toContain("SELECT trade_id FROM fills LIMIT 1;");
  });

  test("does not wait for who reads a FIFO in its history's place: it says so, and keeps none", () => {
    const fifo = join(folder, "state", "fifo");
    mkdirSync(join(folder, "state"), { recursive: true });
    execFileSync("mkfifo", [fifo]);
    const steps: [string, string][] = [
      [prompt, "SELECT 1 AS one;\r"],
      ["(1 row, ", ""],
      [prompt, "\x04"],
    ];
    const { status, seen } = typed(["shell"], steps, fifo);
    expect(status).toBe(0);
    expect(
      seen.replace(/\s+/g, " ").match(/the history cannot be kept: [^ ]+ is not a regular file/g),
    ).toEqual([`the history cannot be kept: ${fifo} is not a regular file`]);
  });

  test("Ctrl-C stops the statement, drops a line, and leaves when there is nothing to drop", async () => {
    const { status, seen } = typed(
      ["shell"],
      [
        [prompt, "SELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000));\r"],
        ["1000000));\r", "\x03"],
        ["stopped", ""],
        [prompt, "half a li\x03"],
        [prompt, "SELECT 1 AS again;\r"],
        ["(1 row, ", ""],
        [prompt, "\x03"],
        ["Ctrl-C again", "\x03"],
      ],
    );
    expect(status).toBe(0);
    expect(seen).toContain("again\n-----\n    1\n");
    expect((await readdir(folder)).filter((name) => name !== "state")).toEqual([]);
  });

  test("a statement that crashes, or goes on for too long, ends alone", () => {
    const { status, seen } = typed(
      ["shell", "--timeout", "1s"],
      [
        [prompt, "SELECT json_structure(repeat('[', 3000000) || repeat(']', 3000000));\r"],
        ["the query crashed DuckDB", ""],
        [prompt, "SELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000));\r"],
        ["the query took longer than 1 s", ""],
        [prompt, "SELECT 1 AS again;\r"],
        ["(1 row, ", ""],
        [prompt, ".quit\r"],
      ],
    );
    expect(status).toBe(0);
    expect(seen).toContain("again\n-----\n    1\n");
  });

  test("a table is cut to the terminal's width", () => {
    const { status, seen } = typed(["query", "SELECT *, 1 AS last FROM fills LIMIT 1"], []);
    expect(status).toBe(0);
    expect(seen).toMatch(/^note: \d+ of 20 columns are shown; /m);
    // the note comes by way of another process than the table
    const table = seen.split("\n").filter((line) => line !== "" && !line.startsWith("note: "));
    expect(table).toHaveLength(3);
    for (const line of table) expect(line.length).toBeLessThanOrEqual(80);
  });
});

describe("the shell in a pipe", () => {
  test("has one process for all statements, and sees what was committed between them", async () => {
    const { child, finished, seen } = start(["shell", "--archive", built.dir, "-f", "csv"], {
      TMPDIR: folder,
    });
    child.stdin.write("SELECT count(*) AS first FROM runs;\n");
    await seen("first\n1\n");
    const [own] = childrenOf(child.pid!);
    const manifest = built.archive.layout.manifestFile({ instanceId: "a", runId: "1" });
    const kept = await readFile(manifest);
    await rm(manifest);
    child.stdin.write("SELECT count(*) AS second FROM runs;\n");
    await seen("second\n0\n");
    await writeFile(manifest, kept);
    expect(childrenOf(child.pid!)).toEqual([own]);
    child.stdin.end("SELECT 3 AS third");
    expect(await finished).toMatchObject({ status: 0, stdout: "first\n1\nsecond\n0\nthird\n3\n" });
  });

  test.each(["SIGKILL", "SIGHUP"] as const)(
    "leaves nothing when it dies of %s, idle as it may be",
    async (signal) => {
      const temporary = await mkdtemp(join(tmpdir(), "runvault-test-"));
      const { child, finished } = start(["shell", "--archive", built.dir], { TMPDIR: temporary });
      await expect.poll(() => childrenOf(child.pid!)).toHaveLength(1);
      const [own] = childrenOf(child.pid!);
      await expect.poll(() => readdir(temporary)).toHaveLength(1);
      process.kill(child.pid!, signal);
      await finished;
      await expect.poll(() => isAlive(own!)).toBe(false);
      await expect.poll(() => readdir(temporary)).toEqual([]);
    },
  );

  test("ends by a signal as other commands do", async () => {
    const { child, finished, seen } = start(["shell", "--archive", built.dir, "-f", "csv"], {
      TMPDIR: folder,
    });
    child.stdin.write("SELECT 1 AS a;\nSELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000));\n");
    await seen("a\n1\n");
    child.kill("SIGTERM");
    expect((await finished).status).toBe(143);
    expect((await readdir(folder)).filter((name) => name !== "state")).toEqual([]);
  });
});
