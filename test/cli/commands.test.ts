import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { runInside, startInside } from "../fixtures/command/command-inside.ts";

let built: Awaited<ReturnType<typeof buildArchive>>;
beforeAll(async () => {
  built = await buildArchive([
    { instanceId: "a/b", runId: "12", tables: { fills: { state: "COMPLETE", rows: 3 } } },
    { instanceId: "c", runId: "x", tables: { fills: { state: "INCOMPLETE", rows: 5 } } },
  ]);
});
afterAll(() => built.dispose());

const here = () => ["--archive", built.dir];
const endless = "SELECT md5(i::VARCHAR) AS h FROM range(1000000000000) r(i)";

describe("runvault query", () => {
  it("answers in every format", async () => {
    const sql = "SELECT seq, price FROM fills ORDER BY seq LIMIT 1";
    const texts = await Promise.all(
      ["table", "json", "ndjson", "csv"].map(
        async (format) => (await runInside(["query", ...here(), "-f", format, sql])).stdout,
      ),
    );
    expect(texts).toEqual([
      "seq                price\n---  -------------------\n  0  123456789.000000001\n",
      '[\n{"seq":0,"price":"123456789.000000001"}\n]\n',
      '{"seq":0,"price":"123456789.000000001"}\n',
      "seq,price\n0,123456789.000000001\n",
    ]);
  });

  it("says how a PIVOT can be run", async () => {
    const { status, stderr } = await runInside(["query", ...here(), "PIVOT fills ON symbol USING count(*)"]);
    expect(status).toBe(2);
    expect(stderr).toContain("PIVOT … ON column IN (…)");
  });

  it("calls a constant beyond every double a wrong query", async () => {
    const { status, stderr } = await runInside(["query", ...here(), "SELECT 1e400::DOUBLE"]);
    expect(status).toBe(2);
    expect(stderr).toMatch(/query_invalid: .*too large.*\n.*'Infinity'::DOUBLE/);
  });

  it("notes on standard error that a table is cut", async () => {
    const { stdout, stderr } = await runInside([
      "query",
      ...here(),
      "--table-rows",
      "2",
      "SELECT seq FROM fills",
    ]);
    expect(stdout.split("\n")).toHaveLength(5);
    expect(stderr).toContain("2 of ");
  });

  it("refuses what does not only read, with exit status 2", async () => {
    const { status, stderr } = await runInside(["query", ...here(), "COPY fills TO '/tmp/runvault-no.csv'"]);
    expect(status).toBe(2);
    expect(stderr).toContain("query_invalid: only a SELECT");
  });

  it("fails with its time limit, never with a short answer", async () => {
    const { status, stderr } = await runInside([
      "query",
      ...here(),
      "-f",
      "ndjson",
      "--timeout",
      "100ms",
      endless,
    ]);
    expect(status).toBe(2);
    expect(stderr).toContain("took longer than 0.1 s");
  });
});

describe("runvault runs and files", () => {
  it("list runs with states, in names that can be given back", async () => {
    const { stdout } = await runInside(["runs", ...here()]);
    expect(stdout).toMatch(/^a%2Fb\/12 +COMPLETE +3 +[\d.]+ kB +2026-01-01 00:00$/m);
    expect(stdout).toMatch(/^c\/x +INCOMPLETE/m);
    const json = JSON.parse((await runInside(["runs", "a%2Fb", ...here(), "--json"])).stdout);
    expect(json.runs).toMatchObject([
      { instanceId: "a/b", runId: "12", tables: { fills: { state: "COMPLETE" } } },
    ]);
  });

  it("list committed files, of incomplete tables only when allowed", async () => {
    const { stdout } = await runInside(["export", "--list", "fills", ...here()]);
    expect(stdout).toBe(`${join(built.dir, "data/a%2Fb/12/fills-all-g1.parquet")}\n`);
    const all = JSON.parse(
      (await runInside(["export", "--list", "fills", "--allow-incomplete", "--json", ...here()])).stdout,
    );
    expect(all).toMatchObject([
      { instance: "a/b", run: "12", rows: 3 },
      { instance: "c", run: "x", rows: 5 },
    ]);
    const leftOut = "1 table is not complete and was left out: fills of c/x (INCOMPLETE)";
    const shown = "shown although not proven: fills of c/x (INCOMPLETE)";
    for (const [args, note] of [
      [["export", "--list", "fills"], leftOut],
      [["export", "--list", "fills", "--allow-incomplete"], shown],
      [["export", "--list", "fills", "--run", "a%2Fb/12"], undefined],
      [["query", "SELECT count(*) FROM fills_f"], leftOut],
      [["query", "SELECT count(*) FROM fills", "--allow-incomplete"], shown],
      [["query", "SELECT count(*) FROM orders"], undefined],
    ] as const) {
      const { status, stderr } = await runInside([...args, ...here()]);
      const found = [leftOut, shown].find((text) => stderr.includes(text));
      expect([args, status, found]).toEqual([args, 0, note]);
    }
    const unknown = await runInside(["export", "--list", "fills", "--run", "c/y", ...here()]);
    expect(unknown.status).toBe(2);
    expect(unknown.stderr).toContain("not_archived");
  });
});

describe("runvault simulate", () => {
  it("prints its address, serves a world, logs requests, and stops when told", async () => {
    const dir = await mkdtemp(join(tmpdir(), "runvault-test-"));
    try {
      const args = ["simulate", "--json", "--rows", "500", "--runs", "1", "--cache", join(dir, "cache")];
      const running = startInside([...args, "--request-log", join(dir, "log")]);
      const { url, port } = JSON.parse(await running.firstLine()) as { url: string; port: number };
      expect(url).toBe(`http://127.0.0.1:${port}/api/v1`);
      const runs = await runInside(["runs", "--gateway", "--json"], {
        env: { RUNVAULT_GATEWAY: url },
      });
      expect(JSON.parse(runs.stdout).runs).toHaveLength(1);
      running.signal("SIGTERM");
      expect((await running.finished).status).toBe(0);
      const lines = (await readFile(join(dir, "log"), "utf8"))
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line));
      expect(lines.length).toBeGreaterThan(0);
      expect(lines[0]).toMatchObject({ method: "GET", status: 200 });
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });
});
