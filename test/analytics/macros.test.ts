import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openQuery, type Query } from "../../src/analytics/query/query.ts";
import { render } from "../../src/analytics/render/render.ts";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { openDuckDB } from "../../src/duckdb/open-duckdb.ts";
import { archiveRun } from "../../src/extract/run/archive-run.ts";
import { wallClock } from "../../src/model/time.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { inProject } from "../fixtures/command/project.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

let folder: string;
let dir: string;
let archive: Archive;
let query: Query;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-macros-"));
  dir = join(folder, "archive");
  await using world = await openSimulator({
    cacheDir: join(folder, "worlds"),
    runs: 1,
    rows: 4_000,
    clock: () => 2n ** 62n,
  });
  archive = await openArchive(dir, { create: true });
  await archiveRun({
    source: world,
    archive,
    run: { instanceId: "alpha-1", runId: "2022-01-01-001" },
    clock: wallClock,
    retry: quickRetry(),
    signal: new AbortController().signal,
    tool: "test",
    duckdb: sharedDuckDB,
  });
  query = await openQuery(archive);
});
afterAll(async () => {
  await query[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const run = "'alpha-1', '2022-01-01-001'";

async function answer(sql: string, from = query): Promise<unknown[]> {
  let text = "";
  for await (const part of render(await from.run(sql), "ndjson")) text += part;
  return text
    .trimEnd()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown);
}

/** A row with its numbers to eleven digits: sums of doubles come in another order from Parquet than from a table. */
function rounded(row: unknown): unknown {
  const values = Object.entries(row as Record<string, unknown>);
  return Object.fromEntries(
    values.map(([name, value]) => [name, typeof value === "number" ? value.toPrecision(11) : value]),
  );
}

const documented =
  readFileSync(inProject("docs", "metrics.md"), "utf8").match(/^\w+\(instance, run\b.*\)$/gm) ?? [];

it("docs/metrics.md has macros", () => {
  expect(documented.length).toBeGreaterThan(10);
});

it.each(documented)("docs/metrics.md has the arguments of %s", async (signature) => {
  const name = signature.slice(0, signature.indexOf("("));
  await expect(answer(`FROM ${name}(1)`)).rejects.toThrow(signature);
});

describe("a statement that names a macro", () => {
  it("has it, over the tables that it reads", async () => {
    const rows = await answer(`SELECT metric FROM performance(${run}, session := 'bars')`);
    expect(rows).toContainEqual({ metric: "sharpe" });
    expect(await answer(`FROM session_returns(${run}, session := 'bars')`)).not.toEqual([]);
  });

  it("finds it in a subquery, a WITH and an EXPLAIN, in any case", async () => {
    const nested = `WITH p AS (FROM PERFORMANCE(${run})) SELECT count(*) > 0 AS n FROM p`;
    expect(await answer(nested)).toEqual([{ n: true }]);
    expect(await answer(`SELECT (SELECT count(*) FROM monthly(${run})) > 0 AS n`)).toEqual([{ n: true }]);
    expect(await answer(`EXPLAIN FROM drawdowns(${run})`)).not.toEqual([]);
  });

  it("is told of the nearest macro where the name is wrong", async () => {
    await expect(answer(`FROM performence(${run})`)).rejects.toMatchObject({
      code: "query_invalid",
      hint: expect.stringContaining("Did you mean performance?"),
    });
  });

  it("runs in one thread, and the next statement in as many as before", async () => {
    await using wide = await openQuery(archive, { threads: 3 });
    const threads = "CAST(current_setting('threads') AS INTEGER) AS threads";
    expect(await answer(`SELECT ${threads} FROM fills LIMIT 1`, wide)).toEqual([{ threads: 3 }]);
    expect(await answer(`SELECT ${threads} FROM monthly(${run}) LIMIT 1`, wide)).toEqual([{ threads: 1 }]);
    expect(await answer(`SELECT ${threads} FROM fills LIMIT 1`, wide)).toEqual([{ threads: 3 }]);
  });

  it("answers in the same bytes, whatever threads are allowed", async () => {
    const sql = `FROM performance(${run}, session := 'bars')`;
    const args = ["query", sql, "--archive", dir, "--json", "--threads"];
    const [one, eight, again] = [
      await runInside([...args, "1"]),
      await runInside([...args, "8"]),
      await runInside([...args, "8"]),
    ];
    expect(one).toMatchObject({ status: 0, stderr: "" });
    expect(eight.stdout).toBe(one.stdout);
    expect(again.stdout).toBe(one.stdout);
  });

  it("cannot call what macros are made of", async () => {
    await expect(answer(`FROM measured_points(${run})`)).rejects.toMatchObject({ code: "query_invalid" });
  });
});

it("a statement has the macros made that it names, and those that they call, and no others", async () => {
  await using other = await openQuery(archive);
  const made = async () => {
    const sql = `SELECT function_name AS name FROM duckdb_functions()
      WHERE function_name IN ('session_points', 'monthly', 'performance', 'factor_ic') ORDER BY ALL`;
    return (await answer(sql, other)).map((row) => (row as { readonly name: string }).name);
  };
  expect(await made()).toEqual([]);
  await answer(`FROM monthly(${run})`, other);
  expect(await made()).toEqual(["monthly", "session_points"]);
  await answer(`FROM performance(${run})`, other);
  expect(await made()).toEqual(["monthly", "performance", "session_points"]);
});

describe("a database with analytics", () => {
  it.each(["copies", "views"])("answers as a query does, with %s of the tables", async (kind) => {
    const file = join(folder, `${kind}.duckdb`);
    const views = kind === "views" ? ["--views"] : [];
    const args = ["--with-analytics", ...views, "--archive", dir, "--out", file, "--quiet"];
    const done = await runInside(["export", ...args]);
    expect(done).toMatchObject({ status: 0, stderr: "" });
    const { connection, close } = await openDuckDB({ threads: 1, utc: true });
    try {
      await connection.run(`ATTACH '${file}' AS x (READ_ONLY)`);
      await connection.run("USE x");
      for (const sql of [
        `SELECT metric, value, reason, n::INTEGER AS n FROM performance(${run}, session := 'bars') ORDER BY metric`,
        `SELECT depth, points::INTEGER AS points, is_open FROM drawdowns(${run}, session := 'bars')`,
        `SELECT venue, order_type, liquidity, symbol, metric, value, amount::VARCHAR AS amount, reason, n::INTEGER AS n
         FROM execution(${run}) ORDER BY ALL`,
        `SELECT order_type, state, orders::INTEGER AS n FROM order_funnel(${run}) ORDER BY ALL`,
        `SELECT factor, symbol, metric, value, reason FROM factor_coverage(${run}) ORDER BY ALL`,
        `SELECT factor, horizon::INTEGER AS horizon, metric, value, reason FROM factor_ic(${run}) ORDER BY ALL`,
        `SELECT factor, quantile::INTEGER AS quantile, metric, value, reason FROM factor_quantiles(${run}) ORDER BY ALL`,
        "SELECT count(*)::INTEGER AS n FROM round_trips",
        "SELECT count(*)::INTEGER AS n FROM matches",
        "SELECT count(*)::INTEGER AS n FROM positions",
      ]) {
        const rows = (await connection.runAndReadAll(sql)).getRowObjectsJson();
        expect(rows.map(rounded)).toEqual((await answer(sql)).map(rounded));
      }
    } finally {
      close();
    }
  });

  it.each([
    [["--format", "csv"], "--with-analytics writes a database, not csv"],
    [["--out", join(tmpdir(), "refused.csv")], "--with-analytics writes a database, not csv"],
    [["--format", "duckdb", "--from", "2022-01-01"], "--with-analytics needs all rows of a run"],
    [["--format", "duckdb", "--account", "main"], "--with-analytics needs all rows of a run"],
  ])("is refused with %j", async (args, message) => {
    const out = join(folder, "refused");
    const done = await runInside([
      "export",
      "equity",
      "--with-analytics",
      "--archive",
      dir,
      "--out",
      out,
      ...args,
    ]);
    expect(done.status).toBe(2);
    expect(done.stderr).toContain(message);
  });

  it("holds the tables that the macros read, whichever are named, and doubles of columns that are doubles already", async () => {
    const file = join(folder, "doubles.duckdb");
    const args = ["factors", "--with-analytics", "--decimals", "double", "--archive", dir, "--out", file];
    expect(await runInside(["export", ...args, "--quiet"])).toMatchObject({ status: 0, stderr: "" });
    const { connection, close } = await openDuckDB({ threads: 1, utc: true });
    try {
      await connection.run(`ATTACH '${file}' AS x (READ_ONLY)`);
      await connection.run("USE x");
      const rows = await connection.runAndReadAll(`FROM performance(${run}, session := 'bars')`);
      expect(rows.currentRowCount).toBeGreaterThan(0);
    } finally {
      close();
    }
  });
});
