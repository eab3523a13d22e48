// @module-tag slow
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { DuckDBInstance } from "@duckdb/node-api";
import { tableFromIPC } from "apache-arrow";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

let built: Awaited<ReturnType<typeof buildArchive>>;
let folder: string;
beforeAll(async () => {
  built = await buildArchive([
    { instanceId: "a", runId: "1", tables: { fills: { state: "COMPLETE", rows: 3 } } },
  ]);
  folder = await mkdtemp(join(tmpdir(), "runvault-query-"));
});
afterAll(async () => {
  await built.dispose();
  await rm(folder, { recursive: true, force: true });
});

type More = Parameters<typeof runInside>[1];
const query = (args: readonly string[], more: More = {}) =>
  runInside(["query", "--archive", built.dir, ...args], more);
const inFolder = (name: string) => join(folder, name);

/** What another DuckDB makes of a file. */
async function rowsOf(sql: string): Promise<unknown[][]> {
  const connection = await (await DuckDBInstance.create()).connect();
  try {
    return (await connection.runAndReadAll(sql)).getRows();
  } finally {
    connection.closeSync();
  }
}

describe("query -o FILE", () => {
  test.each([
    ["x.csv", "seq\n0\n1\n2\n"],
    ["x.ndjson", '{"seq":0}\n{"seq":1}\n{"seq":2}\n'],
    ["x.jsonl", '{"seq":0}\n{"seq":1}\n{"seq":2}\n'],
    ["x.json", '[\n{"seq":0},\n{"seq":1},\n{"seq":2}\n]\n'],
    ["x.txt", "seq\n---\n  0\n  1\n  2\n"],
  ])("writes the form that the name tells: %s", async (name, text) => {
    const { status, stdout, stderr } = await query([
      "-o",
      inFolder(name),
      "SELECT seq FROM fills ORDER BY 1",
    ]);
    expect({ status, stdout }, stderr).toEqual({ status: 0, stdout: "" });
    expect(stderr).toBe(`${inFolder(name)}  3 rows, ${text.length} B\n`);
    expect(await readFile(inFolder(name), "utf8")).toBe(text);
  });

  test("writes Arrow files that have an index, and streams that have none", async () => {
    for (const [name, magic] of [
      ["x.arrow", "ARROW1"],
      ["x.arrows", "\uFFFD\uFFFD\uFFFD\uFFFD"],
    ] as const) {
      expect((await query(["-o", inFolder(name), "FROM fills"])).status).toBe(0);
      const bytes = await readFile(inFolder(name));
      expect(bytes.subarray(0, magic.length === 6 ? 6 : 4).toString()).toBe(magic);
      expect(tableFromIPC(bytes).numRows).toBe(3);
    }
  });

  test("says what it wrote as JSON where that is asked for, and nothing with --quiet", async () => {
    const told = await query(["--json", "-o", inFolder("told"), "SELECT 1 AS a"]);
    expect(JSON.parse(told.stderr)).toEqual({ file: inFolder("told"), rows: 1, bytes: 12 });
    expect((await query(["-q", "-o", inFolder("quiet.csv"), "SELECT 1"])).stderr).toBe("");
  });

  test("leaves what is there alone, unless --force replaces it", async () => {
    const file = inFolder("there.csv");
    await writeFile(file, "mine");
    const refused = await query(["-o", file, "SELECT 1 AS a"]);
    expect(refused.status).toBe(2);
    expect(refused.stderr).toContain("--force to replace it");
    expect(await readFile(file, "utf8")).toBe("mine");
    expect((await query(["-o", file, "--force", "SELECT nope"])).status).toBe(2);
    expect(await readFile(file, "utf8")).toBe("mine");
    expect((await query(["-o", file, "--force", "SELECT 1 AS a"])).status).toBe(0);
    expect(await readFile(file, "utf8")).toBe("a\n1\n");
  });

  test.each(["csv", "parquet", "arrow"])(
    "leaves nothing of a %s that fails in the middle",
    async (ending) => {
      const file = inFolder(`fails.${ending}`);
      const sql =
        "SELECT CASE WHEN i = 100000 THEN error('boom') ELSE i::VARCHAR END AS a FROM range(200000) r(i)";
      const { status, stderr } = await query(["-o", file, sql]);
      expect(status).toBe(2);
      expect(stderr).toContain("boom");
      expect((await readdir(folder)).filter((name) => name.includes("fails"))).toEqual([]);
    },
  );

  test("keeps an answer that is not all there under --strict, and exits with 4", async () => {
    const file = inFolder("strict.csv");
    expect((await query(["--strict", "-o", file, "SELECT count(*) AS n FROM orders"])).status).toBe(4);
    expect(await readFile(file, "utf8")).toBe("n\n0\n");
  });

  test.each([
    [
      ["-o", "x.xls", "SELECT 1"],
      "the format is not clear from the file name: x.xls",
      "table, vertical, json",
    ],
    [["-o", "x", "SELECT 1"], "the format is not clear from the file name: x", "--format"],
    [["-o", "archive/x.csv", "SELECT 1"], "--out is inside the archive", "outside"],
    [["--file", "x.sql", "SELECT 1"], "--file cannot be combined with a statement", "one of them"],
    [["--file", "no/such.sql"], "the file cannot be read: ENOENT", ""],
  ])("%j is refused", async (args, message, hint) => {
    const named = args.map((word) => word.replace(/^archive/, built.dir));
    const { status, stderr } = await query(named);
    expect(status).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).toContain(hint);
  });
});

describe("Parquet", () => {
  test("has every value exactly, also of types that DuckDB would write as another value", async () => {
    const file = inFolder("exact.parquet");
    const columns = [
      "170141183460469231731687303715884105::HUGEINT AS h",
      "[{'a': 9007199254740993::HUGEINT}] AS nested",
      "MAP {'k': 9007199254740993::HUGEINT} AS m",
      "TIMESTAMP_MS '2022-01-01 00:00:00.001' AS ms",
      "TIMESTAMP_S '2022-01-01 00:00:01' AS s",
      "TIMESTAMP_NS '2022-01-01 00:00:00.000000001' AS ns",
      "INTERVAL '1 day 5 microseconds' AS i",
      "'01:02:03+02'::TIMETZ AS tz",
      "340282366920938463463374607431768211455::UHUGEINT AS u",
      "12345678901234567890.123456789::DECIMAL(38,9) AS d",
      "'-0'::DOUBLE AS z",
      "18446744073709551615::UBIGINT AS big",
      "1 AS same, 2 AS same",
    ];
    const { status, stderr } = await query(["-o", file, `SELECT ${columns.join(", ")}`]);
    expect({ status, stderr: stderr.split("  ")[1]?.split(",")[0] }, stderr).toEqual({
      status: 0,
      stderr: "1 row",
    });
    const types = await rowsOf(`SELECT column_name, column_type FROM (DESCRIBE FROM '${file}')`);
    expect(Object.fromEntries(types)).toEqual({
      h: "DECIMAL(38,0)",
      nested: "STRUCT(a DECIMAL(38,0))[]",
      m: "MAP(VARCHAR, DECIMAL(38,0))",
      ms: "TIMESTAMP",
      s: "TIMESTAMP",
      ns: "TIMESTAMP_NS",
      i: "VARCHAR",
      tz: "VARCHAR",
      u: "VARCHAR",
      d: "DECIMAL(38,9)",
      z: "DOUBLE",
      big: "UBIGINT",
      same: "INTEGER",
      same_2: "INTEGER",
    });
    expect((await rowsOf(`SELECT COLUMNS(*)::VARCHAR FROM '${file}'`))[0]).toEqual([
      "170141183460469231731687303715884105",
      "[{'a': 9007199254740993}]",
      "{k=9007199254740993}",
      "2022-01-01 00:00:00.001",
      "2022-01-01 00:00:01",
      "2022-01-01 00:00:00.000000001",
      "1 day 00:00:00.000005",
      "01:02:03+02",
      "340282366920938463463374607431768211455",
      "12345678901234567890.123456789",
      "-0.0",
      "18446744073709551615",
      "1",
      "2",
    ]);
  });

  test("keeps order, and a negative zero among zeros", async () => {
    const file = inFolder("order.parquet");
    const sql =
      "SELECT i, CASE WHEN i % 2 = 0 THEN '-0'::DOUBLE ELSE 0 END AS z FROM range(300000) r(i) ORDER BY i DESC";
    expect((await query(["-o", file, sql])).status).toBe(0);
    const wrong = `SELECT count(*)::INTEGER FROM (SELECT *, row_number() OVER () AS n FROM '${file}') WHERE i <> 300000 - n OR signbit(z) <> (i % 2 = 0)`;
    expect(await rowsOf(wrong)).toEqual([[0]]);
  });

  test("refuses an integer beyond 38 digits, which no type of it holds", async () => {
    const { status, stderr } = await query([
      "-o",
      inFolder("huge.parquet"),
      "SELECT '170141183460469231731687303715884105727'::HUGEINT AS h",
    ]);
    expect({ status, said: stderr.includes("query_invalid") }, stderr).toEqual({ status: 2, said: true });
  });

  test("goes to standard output, but not to a terminal", async () => {
    const { status, stdout } = await query(["--format", "parquet", "FROM fills"]);
    expect({ status, ends: [stdout.slice(0, 4), stdout.slice(-4)] }).toEqual({
      status: 0,
      ends: ["PAR1", "PAR1"],
    });
    const refused = await query(["--format", "parquet", "FROM fills"], { stdoutIsTerminal: true });
    expect(refused.status).toBe(2);
    expect(refused.stderr).toContain("parquet is binary and cannot be shown on a terminal");
  });

  test("opens no door: a statement still writes nothing", async () => {
    const file = inFolder("door.parquet");
    const { status } = await query(["-o", file, "COPY (SELECT 1) TO '/tmp/runvault-door.parquet'"]);
    expect(status).toBe(2);
    expect((await readdir(folder)).includes("door.parquet")).toBe(false);
  });
});

describe("the statement comes", () => {
  test("from a file, whose lines errors name", async () => {
    const file = inFolder("a.sql");
    await writeFile(file, "\uFEFF-- a comment\n\nSELECT count(*) AS n\nFROM fills;\n");
    expect(await query(["--file", file, "-f", "csv"])).toMatchObject({ status: 0, stdout: "n\n3\n" });
    for (const [sql, line] of [
      ["\n\nSELECT 1,\n nope FROM fills", 4],
      ["\n\nSELECT 1 FROM (", 3],
      ["\nSELECT\n symbol::INTEGER\nFROM fills", 3],
      ["-- c\nEXPLAIN\nSELECT\n nope", 4],
    ] as const) {
      await writeFile(file, sql);
      const { status, stderr } = await query(["--file", file]);
      expect(status).toBe(2);
      expect(stderr).toContain(`LINE ${line}:`);
      expect(stderr).toContain(`at: file ${file}, line ${line}\n`);
    }
  });

  test.each([[["-"]], [["--file", "-"]], [[]]])("from standard input with %j", async (args) => {
    const stdin = Readable.from([Buffer.from("SELECT count(*) AS n\n"), Buffer.from("FROM fills")]);
    expect(await query([...args, "-f", "csv"], { stdin })).toMatchObject({ status: 0, stdout: "n\n3\n" });
  });

  test("from nowhere: that is said", async () => {
    const { status, stderr } = await query([], { stdinIsTerminal: true });
    expect(status).toBe(2);
    expect(stderr).toContain("no statement is given");
  });

  test("with a bound", async () => {
    const stdin = Readable.from([Buffer.alloc(1024 * 1024), Buffer.from("x")]);
    const { status, stderr } = await query([], { stdin });
    expect(status).toBe(2);
    expect(stderr).toContain("the SQL is longer than 1 MiB");
  });
});

describe("people are shown", () => {
  const terminal = { stdoutIsTerminal: true, columns: 40 };

  test("as much of a table as fits into their terminal, and of how much", async () => {
    const wide = "SELECT 1 AS a, repeat('x', 50) AS b, 2 AS c, repeat('y', 13) AS d FROM range(1200)";
    const { stdout, stderr } = await query([wide], terminal);
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(1_002);
    expect(lines.slice(0, 3)).toEqual(["a  …  d", `-  -  ${"-".repeat(13)}`, `1  …  ${"y".repeat(13)}`]);
    const told = stderr.replace(/\s+/g, " ");
    expect(told).toContain("note: 2 of 4 columns are shown; for all, use the vertical format or a file ");
    expect(told).toContain("note: 1,000 of 1,200 rows are shown; for all, use the csv format or a file ");
  });

  test("decimals without zeros that no row needs, as many digits in each row", async () => {
    const decimals = "SELECT * FROM (VALUES (1.500000::DECIMAL(18,6), 2::DECIMAL(9,3)), (NULL, 30)) t(a, b)";
    expect((await query([decimals], terminal)).stdout).toBe("   a   b\n----  --\n 1.5   2\nNULL  30\n");
    const more = "SELECT * FROM (VALUES (1.500000::DECIMAL(18,6)), (20.250000)) t(a)";
    expect((await query([more], terminal)).stdout).toBe("    a\n-----\n 1.50\n20.25\n");
    expect((await query([more])).stdout).toContain("20.250000");
  });

  test("all of it elsewhere, however long it is", async () => {
    const { stdout, stderr } = await query(["SELECT i, repeat('x', 200) AS t FROM range(5000) r(i)"]);
    expect(stdout.trimEnd().split("\n")).toHaveLength(5_002);
    expect(stdout.split("\n").at(-2)).toBe(`4999  ${"x".repeat(200)}`);
    expect(stderr).toBe("");
  });

  test("one column at least", async () => {
    const { stdout } = await query(["SELECT repeat('x', 90) AS a, 1 AS b"], { ...terminal, columns: 10 });
    expect(stdout).toBe(`a\n${"-".repeat(16)}\n${"x".repeat(15)}…\n`);
  });

  test("one field a line in the vertical form, with what a terminal would obey escaped", async () => {
    const sql = "SELECT i AS n, chr(27) || '[31m' AS text, NULL AS nothing FROM range(2) r(i)";
    const { stdout } = await query(["-f", "vertical", sql], terminal);
    expect(stdout).toBe(
      [
        "-[ 1 ]--+-",
        "n       | 0",
        "text    | \\u001b[31m",
        "nothing | NULL",
        "-[ 2 ]--+-",
        "n       | 1",
        "text    | \\u001b[31m",
        "nothing | NULL",
        "",
      ].join("\n"),
    );
  });
});
