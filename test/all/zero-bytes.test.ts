import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { metricsSchema } from "../../src/analytics/metrics/metrics-document.ts";
import { formatRun } from "../../src/model/run-argument.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { type DegenerateArchive, degenerateArchive } from "../fixtures/degenerate/degenerate-archive.ts";
import { zeroByte, zeroBytes } from "../fixtures/degenerate/zero-bytes.ts";

let archive: DegenerateArchive;
let run: string;
beforeAll(async () => {
  archive = await degenerateArchive(zeroBytes);
  run = formatRun(archive.ref);
});
afterAll(() => archive[Symbol.asyncDispose]());

/** What a command prints that is not told of an error; books that do not balance exit with 4. */
async function told(command: string, ...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await runInside([command, "--archive", archive.dir, ...args]);
  expect(status, stderr).toBe(command === "reconcile" ? 4 : 0);
  return stdout;
}

const rowsOf = async (sql: string) =>
  (await told("query", sql, "--format", "ndjson"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe("a run with a zero byte in every text", () => {
  test("has its figures, under the names as they are", async () => {
    const document = metricsSchema.parse(JSON.parse(await told("metrics", run, "--json")));
    const sections = document.runs[0]!.sections;
    expect(sections.map(({ name, absent }) => [name, absent])).toEqual(
      sections.map(({ name }) => [name, null]),
    );
    const names = (name: string) =>
      sections
        .find((section) => section.name === name)!
        .groups.map(({ account, currency }) => [account, currency]);
    const main = [`${zeroByte}main`, `${zeroByte}USD`];
    expect(names("performance")).toEqual([main, [`${zeroByte}other`, `${zeroByte}USD`]]);
    expect(names("trades")).toEqual([main]);
    expect(names("execution")).toEqual([main]);
    expect(await told("metrics", run)).not.toContain("\0");
  });

  test("is reconciled", async () => {
    const { runs } = JSON.parse(await told("reconcile", run, "--json"));
    const verdicts = runs[0].checks.map(({ verdict }: { verdict: string }) => verdict);
    expect([verdicts[0], verdicts[5]]).toEqual(["HOLDS", "HOLDS"]);
    const { status, stdout } = await runInside([
      "reconcile",
      run,
      "--against",
      run,
      "--archive",
      archive.dir,
    ]);
    expect({ status, same: stdout.includes("SAME") }).toEqual({ status: 0, same: true });
  });

  test("answers macros, tables of trades and filters", async () => {
    const args = `('${archive.ref.instanceId}', '${archive.ref.runId}')`;
    expect(await rowsOf("SELECT symbol, venue, net_pnl FROM round_trips ORDER BY entry_seq")).toEqual([
      { symbol: `${zeroByte}X`, venue: `${zeroByte}V`, net_pnl: "2.000000000000000000" },
      { symbol: `${zeroByte}Y`, venue: null, net_pnl: "1.000000000000000000" },
    ]);
    expect(await rowsOf(`SELECT DISTINCT account FROM performance${args} ORDER BY ALL`)).toEqual([
      { account: `${zeroByte}main` },
      { account: `${zeroByte}other` },
    ]);
    expect(await rowsOf(`SELECT DISTINCT factor FROM factor_ic${args}`)).toEqual([
      { factor: `${zeroByte}signal` },
    ]);
    const fills = await told(
      "export",
      "fills",
      "--format",
      "ndjson",
      "--symbol",
      `${zeroByte}X`,
      "--out",
      "-",
    );
    expect(fills.trim().split("\n")).toHaveLength(2);
  });

  test("is exported with its tables of trades", async () => {
    const file = join(archive.folder, "run.duckdb");
    await told("export", "--format", "duckdb", "--with-analytics", "--out", file);
    const instance = await DuckDBInstance.create(file);
    const connection = await instance.connect();
    const found = await connection.runAndReadAll("SELECT DISTINCT account FROM matches");
    expect(found.getRows()).toEqual([[`${zeroByte}main`]]);
    connection.closeSync();
    instance.closeSync();
  });

  test("has a page and specs that are text", async () => {
    const specs = join(archive.folder, "specs");
    await mkdir(specs);
    await told("report", run, "--out", join(archive.folder, "page.html"), "--specs", specs);
    const files = [
      join(archive.folder, "page.html"),
      ...(await readdir(specs)).map((name) => join(specs, name)),
    ];
    expect(files.length).toBeGreaterThan(5);
    for (const file of files) {
      const text = await readFile(file, "utf8");
      expect(text.includes("\0"), file).toBe(false);
      if (file.endsWith(".json")) JSON.parse(text);
    }
  });
});
