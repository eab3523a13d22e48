// @module-tag slow
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { completed } from "../../src/cli/shell/shell-completion.ts";
import { openHistory } from "../../src/cli/shell/shell-history.ts";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

let built: Awaited<ReturnType<typeof buildArchive>>;
let folder: string;
beforeAll(async () => {
  built = await buildArchive([
    { instanceId: "a", runId: "1", tables: { fills: { state: "COMPLETE", rows: 3 } } },
  ]);
  folder = await mkdtemp(join(tmpdir(), "runvault-shell-"));
});
afterAll(async () => {
  await built.dispose();
  await rm(folder, { recursive: true, force: true });
});

const shell = (script: string, ...more: string[]) =>
  runInside(["shell", "--archive", built.dir, ...more], { stdin: Readable.from([script]) });

describe("a shell that reads standard input", () => {
  test("answers one statement after another, and nothing besides", async () => {
    const script =
      "SELECT 1 AS a; SELECT\n 2 AS b;\n-- the last needs no semicolon\nSELECT count(*) AS n FROM fills";
    expect(await shell(script, "--format", "csv")).toEqual({
      status: 0,
      stdout: "a\n1\nb\n2\nn\n3\n",
      stderr: "",
    });
  });

  test("ends at the first error, with its status, and says where it stands", async () => {
    const { status, stdout, stderr } = await shell(
      "SELECT 1 AS a;\n\nSELECT\n nope;\nSELECT 2;",
      "-f",
      "csv",
    );
    expect({ status, stdout }).toEqual({ status: 2, stdout: "a\n1\n" });
    expect(stderr).toContain("LINE 4:");
    expect(stderr).toContain("at: file standard input, line 4\n");
  });

  test("refuses statements and lines longer than any, however they come", async () => {
    const piece = `${"x".repeat(70_000)}`;
    const endless = Readable.from(
      (function* () {
        for (;;) yield piece;
      })(),
    );
    const line = await runInside(["shell", "--archive", built.dir], { stdin: endless });
    expect(line).toMatchObject({ status: 2, stdout: "" });
    expect(line.stderr).toContain("the SQL is longer than 1 MiB\n  at: file standard input\n");
    const statement = await shell(`SELECT\n${`${piece}\n`.repeat(16)};\nSELECT 1;`);
    expect(statement).toMatchObject({ status: 2, stdout: "" });
    expect(statement.stderr).toContain("the SQL is longer than 1 MiB");
  });

  test("ends where it is told to", async () => {
    expect(await shell("SELECT 1 AS a;\n.quit\nSELECT 2;", "-f", "csv")).toMatchObject({
      status: 0,
      stdout: "a\n1\n",
    });
  });

  test.each(["exit", "quit;", "EXIT ;"])(
    "ends at %s, as other shells do, where no statement has begun",
    async (word) => {
      expect(await shell(`SELECT 1 AS a;\n${word}\nSELECT 2;`, "-f", "csv")).toEqual({
        status: 0,
        stdout: "a\n1\n",
        stderr: "",
      });
      const within = await shell(`SELECT 1 AS\n${word.replace(/ ?;/, "")}\n;`, "-f", "csv");
      expect(within.stdout.toLowerCase()).toMatch(/^(exit|quit)\n1\n$/);
    },
  );

  test("says what --strict means of a statement, and ends there", async () => {
    const { status, stdout } = await shell(
      "SELECT count(*) AS n FROM orders; SELECT 1;",
      "-f",
      "csv",
      "--strict",
    );
    expect({ status, stdout }).toEqual({ status: 4, stdout: "n\n0\n" });
  });
});

describe("commands of the shell", () => {
  test("list tables and columns", async () => {
    const { stdout } = await shell(".tables\n\\dt\n.format csv\n.schema fills\n\\d Runs;\n");
    expect(stdout.match(/^fills_f$/gm)).toHaveLength(2);
    expect(stdout).toContain('fills,price,"DECIMAL(18,9)"\n');
    expect(stdout).toContain("runs,fills_state,VARCHAR\n");
  });

  test("choose the form of answers", async () => {
    const script = ".format ndjson\nSELECT 1 AS a;\n\\x\nSELECT 1 AS a;\n\\x\n.timing on\nSELECT 1 AS a;";
    const { stdout, stderr } = await shell(script);
    expect(stdout).toBe('{"a":1}\nvertical\n-[ 1 ]-+-\na | 1\ntable\ntiming is on\na\n-\n1\n');
    expect(stderr).toMatch(/^\(1 row, [\d.]+ m?s\)\n$/);
  });

  test("send one answer into a file, in the form that its name tells", async () => {
    const file = join(folder, "one.ndjson");
    const script = `.output ${file}\nSELECT 1 AS a;\nSELECT 2 AS b;\n.output ${file}\nSELECT 3;`;
    const { status, stdout, stderr } = await shell(script, "-f", "csv");
    expect({ status, stdout }).toEqual({ status: 2, stdout: "b\n2\n" });
    expect(stderr).toContain(`${file}  1 row, 8 B\n`);
    expect(stderr).toContain("the output file already exists");
    expect(await readFile(file, "utf8")).toBe('{"a":1}\n');
    expect((await shell(`\\o ${file} --force\nSELECT 3 AS c;`)).status).toBe(0);
    expect(await readFile(file, "utf8")).toBe('{"c":3}\n');
  });

  test("run the statements of a file, and name its lines", async () => {
    const file = join(folder, "some.sql");
    await writeFile(file, ".format csv\r\nSELECT 1 AS a;\r\n\r\nSELECT nope;\r\n");
    const { status, stdout, stderr } = await shell(`.read ${file}\nSELECT 2;`);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "a\n1\n" });
    expect(stderr).toContain(`at: file ${file}, line 4\n`);
  });

  test.each([
    [".tabels", "there is no command .tabels", "Did you mean .tables?"],
    [".format cvs", "there is no format cvs", "Did you mean csv?"],
    [".timing maybe", "there is no word maybe", "on, off"],
    [".read", "no file is named", ".read FILE"],
    [".read no/such.sql", "the file cannot be read: ENOENT", ""],
  ])("that cannot be run end it as any error does: %s", async (line, message, hint) => {
    const { status, stdout, stderr } = await shell(`${line}\nSELECT 1;`);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr).toContain(hint);
  });

  test("explain themselves", async () => {
    const { status, stdout } = await shell(".help");
    expect(status).toBe(0);
    for (const name of [".tables", ".schema", ".format", "\\x", ".output", ".read", ".timing", ".quit"]) {
      expect(stdout).toContain(name);
    }
    const narrow = await runInside(["shell", "--archive", built.dir], {
      stdin: Readable.from([".help"]),
      columns: 80,
    });
    expect(narrow.stdout).toMatch(/arrow,\n? +arrow-stream/);
    expect(Math.max(...narrow.stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  test("a file that reads itself comes to an end", async () => {
    const file = join(folder, "itself.sql");
    await writeFile(file, `.read ${file}\n`);
    const { status, stderr } = await shell(`.read ${file}`);
    expect(status).toBe(2);
    expect(stderr).toContain(".read is nested too deeply");
  });
});

describe("Tab completes", () => {
  test.each<[string, string, string, string[]]>([
    ["tables", "", "SELECT * FROM fil", ["fills", "fills_f"]],
    ["columns of the tables that are named", "SELECT ts_event FROM bars\n", "WHERE vo", ["volume"]],
    ["columns of any table, while none is named", "", "SELECT liq", ["liquidity"]],
    ["columns behind a table's name", "", "SELECT fills.tra", ["trade_id"]],
    ["words of SQL, as they are written", "", "SELECT 1 QUAL", ["QUALIFY"]],
    ["and in small letters", "", "select 1 qual", ["qualify"]],
    ["commands", "", ".for", [".format"]],
    ["formats", "", ".format arrow", ["arrow", "arrow-stream"]],
    ["tables of a command", "", "\\d equi", ["equity", "equity_f"]],
    ["nothing where nothing is typed", "", "SELECT ", []],
  ])("%s", (_, before, line, found) => {
    const [hits, word] = completed(line, before);
    expect(hits).toEqual(found);
    expect(line.endsWith(word)).toBe(true);
  });
});

describe("the history", () => {
  test("is remembered in a file that only its owner reads, the newest line first", async () => {
    const file = join(folder, "state", "history");
    const notes: string[] = [];
    const first = await openHistory(file, (note) => notes.push(note));
    expect(first.lines).toEqual([]);
    await first.add("SELECT 1;");
    await first.add("SELECT 'ü\u001b[31m';");
    expect([(await stat(file)).mode & 0o777, (await stat(join(folder, "state"))).mode & 0o777]).toEqual([
      0o600, 0o700,
    ]);
    expect((await openHistory(file, () => {})).lines).toEqual(["SELECT 'ü\\u001b[31m';", "SELECT 1;"]);
    expect(notes).toEqual([]);
  });

  test("becomes private where it was not, and does not grow without end", async () => {
    const file = join(folder, "long");
    const line = `SELECT ${"1".repeat(1_000)};\n`;
    await writeFile(file, line.repeat(3_000), { mode: 0o644 });
    expect((await openHistory(file, () => {})).lines).toHaveLength(1_000);
    const { size, mode } = await stat(file);
    expect({ size, mode: mode & 0o777 }).toEqual({ size: line.length * 1_000, mode: 0o600 });
  });

  test("that cannot be kept is told once, and costs nothing else", async () => {
    const notes: string[] = [];
    const history = await openHistory(folder, (note) => notes.push(note));
    await history.add("SELECT 1;");
    await history.add("SELECT 2;");
    expect(notes).toEqual([expect.stringContaining("is not a regular file")]);
  });

  test("goes nowhere where that is wanted", async () => {
    const notes: string[] = [];
    const history = await openHistory("/dev/null", (note) => notes.push(note));
    await history.add("SELECT 1;");
    expect({ notes, lines: history.lines }).toEqual({ notes: [], lines: [] });
  });
});
