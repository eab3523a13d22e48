import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { macroNames } from "../../src/analytics/sql/macro-names.ts";
import { openDuckDB } from "../../src/duckdb/open-duckdb.ts";
import { literal } from "../../src/duckdb/sql.ts";
import { run, start } from "../fixtures/command/command-process.ts";
import { duckdbSetup, duckdbVersions, requires } from "../fixtures/command/requirement.ts";

const of = "'alpha-1', '2022-01-01-001'";

/** A macro as it is called without options, and with those that make it answer more. */
function callsOf(name: string, parameters: readonly string[]): string[] {
  const sessions = parameters.includes("session") ? ["session := 'bars'"] : [];
  const benchmark = parameters.includes("benchmark") ? ["benchmark := 'BTC-PERP'"] : [];
  const options = [...sessions, ...benchmark].map((_, count, all) => all.slice(0, count + 1).join(", "));
  return [`${name}(${of})`, ...options.map((more) => `${name}(${of}, ${more})`)];
}

/** Rows as JSON, in an order that does not depend on the last digits of a double. */
const rowsSql = (call: string) => `SELECT CAST(to_json(t) AS VARCHAR) FROM (FROM ${call}) t`;

let folder: string;
const files = { copies: "", views: "" };
/** What DuckDB in Node answers of the copies, by call of each macro. */
const expected = new Map<string, readonly unknown[]>();

beforeAll(async () => {
  if (!requires("duckdb-versions")) return;
  folder = await mkdtemp(join(tmpdir(), "runvault-versions-"));
  const simulator = start(["simulate", "--rows", "4000", "--runs", "1", "--symbols", "5", "--edge", "8"]);
  const archive = join(folder, "archive");
  const gateway = await simulator.firstLine();
  const archived = await run(["archive", "--all", "--finished", "--gateway", gateway, "--archive", archive]);
  simulator.child.kill();
  expect(archived).toMatchObject({ status: 0 });
  for (const [name, options] of [
    ["copies", []],
    ["views", ["--views"]],
  ] as const) {
    files[name] = join(folder, `${name}.duckdb`);
    const args = ["export", "--with-analytics", ...options, "--archive", archive, "--out", files[name]];
    expect(await run(args)).toMatchObject({ status: 0 });
  }
  const { connection, close } = await openDuckDB({ threads: 1, utc: true });
  await connection.run(`ATTACH ${literal(files.copies)} AS f (READ_ONLY)`);
  await connection.run("USE f");
  const made = await connection.runAndReadAll(
    "SELECT function_name, parameters FROM duckdb_functions() WHERE database_name = 'f'",
  );
  const parameters = new Map(
    made.getRowObjectsJson().map((row) => [String(row.function_name), row.parameters as string[]]),
  );
  for (const call of Object.keys(macroNames).flatMap((name) => callsOf(name, parameters.get(name)!))) {
    const rows = (await connection.runAndReadAll(rowsSql(call)))
      .getRows()
      .map(([row]) => JSON.parse(String(row)));
    expected.set(call, sorted(rows));
  }
  close();
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Rows in an order that no double decides; where that leaves a choice, in their own. */
function sorted(rows: readonly unknown[]): readonly unknown[] {
  const keyOf = (row: unknown) =>
    JSON.stringify(row, (_, value) => (typeof value === "number" && !Number.isInteger(value) ? 0 : value));
  const keyed = rows.map((row) => ({ row, key: keyOf(row) }));
  return keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)).map(({ row }) => row);
}

/** Where two answers differ by more than 1e-9, relative. */
function apart(got: unknown, wanted: unknown, path = ""): string[] {
  if (typeof got === "number" && typeof wanted === "number") {
    const isNear = Math.abs(got - wanted) <= 1e-9 * Math.max(Math.abs(got), Math.abs(wanted));
    return isNear ? [] : [`${path}: ${got} for ${wanted}`];
  }
  if (typeof got !== "object" || typeof wanted !== "object" || got === null || wanted === null) {
    return got === wanted ? [] : [`${path}: ${JSON.stringify(got)} for ${JSON.stringify(wanted)}`];
  }
  const [a, b] = [got, wanted] as Record<string, unknown>[];
  return [...new Set([...Object.keys(a!), ...Object.keys(b!)])].flatMap((key) =>
    apart(a![key], b![key], `${path}/${key}`),
  );
}

const python = `
import json
opened, statements = json.load(sys.stdin)
def answers(connection):
    # a statement of two seconds would draw its progress among the answers
    connection.execute("SET threads = 1; SET enable_progress_bar = false")
    return [[json.loads(row) for row, in connection.execute(sql).fetchall()] for sql in statements]
if opened["by"] == "USE":
    connection = duckdb.connect()
    connection.execute(f"ATTACH '{opened['file']}' AS x (READ_ONLY)")
    try:
        connection.execute("FROM x.performance('alpha-1', '2022-01-01-001')").fetchall()
        raise SystemExit("a macro of a database that is only attached answers")
    except duckdb.Error:
        connection.execute("USE x")
else:
    connection = duckdb.connect(opened["file"], read_only=True)
json.dump(answers(connection), sys.stdout)
`;

function inPython(
  version: (typeof duckdbVersions)[number],
  opened: { readonly file: string; readonly by: "name" | "USE" },
  statements: readonly string[],
): unknown[][] {
  const told = execFileSync("python3", ["-c", `${duckdbSetup(version)}${python}`], {
    input: JSON.stringify([opened, statements]),
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  return JSON.parse(told) as unknown[][];
}

describe.skipIf(!requires("duckdb-versions"))(
  "an exported database gives the answers of Node's DuckDB",
  () => {
    test("which has rows of every macro", () => {
      const answered = [...expected]
        .filter(([, rows]) => rows.length > 0)
        .map(([call]) => call.split("(")[0]);
      expect([...new Set(answered)]).toEqual(Object.keys(macroNames));
    });

    describe.each(duckdbVersions)("in Python's DuckDB %s", (version) => {
      test.each([
        ["copies", "name"],
        ["views", "USE"],
      ] as const)("with %s, opened by %s", (kind, by) => {
        const calls = [...expected.keys()];
        const answers = inPython(version, { file: files[kind], by }, calls.map(rowsSql));
        const differences = calls.flatMap((call, index) =>
          apart(sorted(answers[index]!), expected.get(call)).map((text) => `${call} ${text}`),
        );
        expect(differences).toEqual([]);
      });

      test("and every row, exactly, of its tables", () => {
        const names = ["fills", "equity", "fills_f", "runs", "round_trips", "matches", "positions"];
        const statements = names.map(
          (name) => `SELECT CAST(to_json(t) AS VARCHAR) FROM ${name} t ORDER BY ALL`,
        );
        const copies = inPython(version, { file: files.copies, by: "name" }, statements);
        expect(copies.map((rows) => rows.length)).not.toContain(0);
        expect(inPython(version, { file: files.views, by: "name" }, statements)).toEqual(copies);
      });
    });
  },
);
