import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tableFromIPC } from "apache-arrow";
import { parse } from "csv-parse/sync";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { literal } from "../../src/duckdb/sql.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { canonicalLine, type Row } from "../../src/row/line.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { type RunningInside, runInside, startInside } from "../fixtures/command/command-inside.ts";
import { withoutExtra } from "../fixtures/foreign/foreign-bench.ts";
import { historyClient, lineOf } from "../fixtures/served/rpc-clients.ts";

/** Two of the gateway's fields are taken by no column. */
const kept = `profile: 1
name: kept
extends: default
tables:
  fills: { columns: { liquidity: absent, venue_order_id: absent } }
`;
/** One came by the profile, one as the contract has rows, into the same archive. */
const byProfile = "alpha-1/2022-01-01-001";
const plain = "alpha-1/2022-01-02-002";
const third = "alpha-1/2022-01-03-003";

let folder: string;
let dir: string;
let gateway: RunningInside;
let url: string;
let profile: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-extra-"));
  dir = join(folder, "archive");
  profile = join(folder, "kept.yaml");
  await writeFile(profile, kept);
  gateway = startInside(["simulate", "--port", "0", "--rows", "500", "--runs", "3", "--cache", folder]);
  url = await gateway.firstLine();
  await done("archive", byProfile, "--gateway", url, "--profile", profile);
  await done("archive", plain, "--gateway", url);
});
afterAll(async () => {
  gateway.signal("SIGTERM");
  await gateway.finished;
  await rm(folder, { recursive: true, force: true });
});

const inside = (command: string, ...more: string[]) => runInside([command, ...more, "--archive", dir]);

/** What a command prints that nothing is wrong with. */
async function done(command: string, ...more: string[]): Promise<string> {
  const { status, stdout, stderr } = await inside(command, ...more);
  expect({ status, stderr }, command).toMatchObject({ status: 0 });
  return stdout;
}

async function rowsOf(sql: string): Promise<Record<string, unknown>[]> {
  return JSON.parse(await done("query", "--json", sql)) as Record<string, unknown>[];
}

/** `extra` of every fill, in the order of an export; null where it has none. */
const kinds = "SELECT extra FROM fills ORDER BY run_id, ts_event, seq";
async function extras(): Promise<unknown[]> {
  return (await rowsOf(kinds)).map(({ extra }) => extra);
}

let outs = 0;
async function exported(...args: string[]): Promise<string> {
  const out = join(folder, `out-${++outs}`);
  await done("export", ...args, "--out", out);
  return out;
}

async function inDuckDB(sql: string, attached?: string): Promise<unknown[]> {
  const means = { memoryLimitMb: 256, threads: 1, tempDirectory: folder };
  const { connection } = await sharedDuckDB.forJob(means);
  if (attached !== undefined) await connection.run(`ATTACH ${literal(attached)} AS x (READ_ONLY)`);
  try {
    return (await connection.runAndReadAll(sql)).getRowsJson().flat();
  } finally {
    if (attached !== undefined) await connection.run("DETACH x");
  }
}

describe("fields that no column takes", () => {
  test("are a column of the tables that have them, and of no other", async () => {
    const { exactTypes } = JSON.parse(await readFile(join(dir, "archive.json"), "utf8")) as {
      exactTypes: Record<string, Record<string, string>>;
    };
    const having = Object.keys(exactTypes).filter((table) => exactTypes[table]!.extra === "VARCHAR");
    expect(having).toEqual(["fills"]);
    const counted = await rowsOf(
      `SELECT run_id, count(*) = count(extra ->> 'liquidity') AS has, count(extra) = 0 AS lacks,
         bool_and((liquidity = '') = has_extra) AS moved
       FROM (SELECT *, extra IS NOT NULL AS has_extra FROM fills) GROUP BY run_id ORDER BY run_id`,
    );
    expect(counted).toEqual([
      { run_id: "2022-01-01-001", has: true, lacks: false, moved: true },
      { run_id: "2022-01-02-002", has: false, lacks: true, moved: true },
    ]);
    expect(await inside("query", "SELECT extra FROM orders")).toMatchObject({ status: 2 });
  });

  test("are in every format of an export, also of runs that have none", async () => {
    const wanted = await extras();
    expect(wanted[0]).toMatch(/^\{"venue_order_id":"V\d+","liquidity":"(MAKER|TAKER)"\}$/);
    expect(wanted.at(-1)).toBeNull();
    for (const decimals of ["exact", "double"]) {
      const of = (format: string) => exported("fills", "--decimals", decimals, "-f", format);
      expect(await inDuckDB(`SELECT extra FROM read_parquet(${literal(await of("parquet"))})`)).toEqual(
        wanted,
      );
      for (const format of ["arrow", "arrow-stream"]) {
        const table = tableFromIPC(await readFile(await of(format)));
        expect([...table.getChild("extra")!]).toEqual(wanted);
      }
      const [header, ...csv] = parse(await readFile(await of("csv"), "utf8")) as string[][];
      expect(header!.at(-1)).toBe("extra");
      expect(csv.map((row) => row.at(-1))).toEqual(wanted.map((extra) => extra ?? ""));
      const lines = (await readFile(await of("ndjson"), "utf8")).split("\n").slice(0, -1);
      const members = lines.map((line) => (JSON.parse(line) as { extra?: object }).extra);
      expect(members.map((extra) => (extra === undefined ? null : JSON.stringify(extra)))).toEqual(wanted);
    }
    const by = "ORDER BY run_id, ts_event, seq";
    for (const form of [[], ["--views"], ["--views", "--run", byProfile, "--run", plain]]) {
      const file = await exported("fills", "orders", ...form, "-f", "duckdb");
      for (const view of ["fills", "fills_f"])
        expect(await inDuckDB(`SELECT extra FROM x.${view} ${by}`, file)).toEqual(wanted);
      const columns = await inDuckDB("SELECT column_name FROM (DESCRIBE x.orders)", file);
      expect(columns).toEqual(tableNamed("orders").columns.map(({ name }) => name));
    }
    const parts = await exported("fills", "--partition", "run", "-f", "parquet");
    const ofRun = await inDuckDB(`SELECT extra FROM ${literal(join(parts, "fills/*/*.parquet"))} ${by}`);
    expect(ofRun).toEqual(wanted);
  });

  test("are served over REST as a member behind the columns, and left out over RPC", async () => {
    const [instanceId = "", runId = ""] = byProfile.split("/");
    const server = startInside(["serve", "--archive", dir]);
    const base = await server.firstLine();
    try {
      const rows = `${base}/history/fills?instance=${instanceId}&run_id=${runId}`;
      const get = async (query = "", accept = "application/x-ndjson") => {
        const response = await fetch(rows + query, { headers: { accept } });
        return await response.text();
      };
      const lines = (await get()).split("\n").slice(0, -1);
      const text = await readFile(await exported("fills", "--run", byProfile, "-f", "ndjson"), "utf8");
      expect(`${lines.join("\n")}\n`).toBe(text);
      // rendered from Parquet
      const { venue } = JSON.parse(lines[0]!) as { venue: string };
      const filtered = lines.filter((line) => line.includes(`"venue":"${venue}"`));
      expect(filtered.length).toBeLessThan(lines.length);
      expect(await get(`&venue=${venue}`)).toBe(filtered.map((line) => `${line}\n`).join(""));
      expect((await get("", "text/csv")).split("\n")[0]).toMatch(/,liquidity,extra$/);

      const table = tableNamed("fills");
      const columns = lines.map((line) => withoutExtra(line, "fills"));
      for (const line of columns) expect(canonicalLine(table, JSON.parse(line) as Row)).toBe(line);
      const selection = { instanceId, runId };
      for (const dialect of ["connect binary", "connect json", "grpc binary"] as const) {
        const client = historyClient({ url: base }, { dialect });
        const got: string[] = [];
        for (let pageToken = ""; ; ) {
          const page = await client.previewTable({ table: "fills", selection, pageSize: 15, pageToken });
          got.push(...page.rows.map(({ row }) => lineOf("fills", row.value)));
          pageToken = page.nextPageToken;
          if (pageToken === "") break;
        }
        expect(got).toEqual(columns);
        const recent = await client.listRecentFills({ selection, limit: 3 });
        expect(recent.fills.map((fill) => lineOf("fills", fill))).toEqual(columns.slice(-3));
      }
    } finally {
      server.signal("SIGTERM");
      await server.finished;
    }
  });
});

describe("the column is taken away and given back", () => {
  const figures = async () => await done("metrics", "--json", byProfile);

  test("by options that are refused where they contradict each other", async () => {
    for (const [args, message] of [
      [["--extra", "fills,orders", "--drop-extra", "orders"], "--extra and --drop-extra both name orders"],
      [["--extra", "fils"], '--extra names an unknown table: "fils"'],
      [["--drop-extra", "fills", "--tables", "fills"], "--drop-extra applies to the whole archive"],
      [[byProfile, "--extra", "orders"], "--extra applies to the whole archive"],
      [["--extra", "orders", "--links"], "cannot be used with"],
      [["--extra", "orders", "--profile", profile], "cannot be used with"],
    ] as const) {
      const { status, stderr } = await inside("maintain", "rebuild", ...args);
      expect([status, stderr]).toEqual([2, expect.stringContaining(message)]);
    }
    expect(await done("maintain", "rebuild", "--extra", "fills", "--drop-extra", "orders")).toBe(
      "nothing to rebuild\n",
    );
  });

  test("which changes no row, and nothing that other commands say", async () => {
    const values = await extras();
    const before = await figures();
    for (const [command = "", ...args] of [
      ["verify", "--deep"],
      ["runs"],
      ["status"],
      ["export", "--list", "fills"],
      ["gc", "--dry-run"],
      ["reconcile", byProfile],
    ])
      await done(command, ...args);
    const copy = join(folder, "copy");
    await cp(dir, copy, { recursive: true });
    expect(await done("maintain", "rebuild", "--drop-extra", "fills")).toMatch(
      /: \d+ rows, 1 bucket converted/,
    );
    expect(await inside("query", kinds)).toMatchObject({ status: 2 });
    expect(await readFile(await exported("fills", "-f", "ndjson"), "utf8")).not.toContain("extra");
    expect(await figures()).toEqual(before);
    const differences = await runInside(["maintain", "diff", copy, dir]);
    expect(differences).toMatchObject({ status: 0, stdout: /note: the column extra: true and false/ });

    // rows that come now are kept whole, but not in Parquet, which is told
    const { stderr } = await inside("archive", third, "--gateway", url, "--profile", profile);
    const told = `fields of fills that no column takes stay in its segments: \`runvault maintain rebuild --archive ${dir} --extra fills\``;
    expect(stderr).toContain(told);
    expect((await inside("maintain", "rebuild", plain, "--profile", profile)).stderr).toContain(told);
    await done("maintain", "rebuild", "--extra", "fills");
    expect(await rowsOf("SELECT count(*) = count(extra) AS whole FROM fills")).toEqual([{ whole: true }]);
    const ofFirst = values.filter((extra) => extra !== null);
    expect((await extras()).slice(0, ofFirst.length)).toEqual(ofFirst);
    await done("verify", "--deep");
  });
});
