// @module-tag slow
import { renameSync } from "node:fs";
import { access, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from "vitest";
import { RunvaultError } from "../../src/model/error.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { ManyRuns } from "../fixtures/source/many-runs.ts";

let folder: string;
let source: ManyRuns;
let server: Served;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-telling-"));
  source = new ManyRuns(1, 4);
  server = await serve({ source, host: "127.0.0.1", port: 0 });
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

const newFolder = async () => join(await mkdtemp(join(folder, "a-")), "archive");
const night = (dir: string) => [
  ...["archive", "--gateway", server.url, "--archive", dir, "--retries", "0"],
  ...["--tables", "fills", "--settle", "0s"],
];
const finished = (dir: string) => [...night(dir), "--all", "--finished"];
/** Times and sizes left out. */
const plain = (text: string) =>
  text.replaceAll(/\d+(\.\d)? s\b/g, "TIME").replaceAll(/\b[\d.]+ k?B\b/g, "SIZE");
const objects = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

/** A run refuses its rows for as long as the body goes on. */
async function withBroken<T>(runId: string, body: () => Promise<T>): Promise<T> {
  const broken = source.source("i1", runId);
  const { rows } = broken;
  broken.rows = () => {
    throw new RunvaultError("history_query_failed", "the store broke");
  };
  try {
    return await body();
  } finally {
    broken.rows = rows;
  }
}

/** The same for what describes it. */
async function withUnknown<T>(runId: string, body: () => Promise<T>): Promise<T> {
  const gone = source.source("i1", runId);
  source.gone.add(gone);
  try {
    return await body();
  } finally {
    source.gone.delete(gone);
  }
}

describe("each run is told when it is committed", () => {
  const cases = [
    { form: [], first: /^i1\/r1 {2}COMPLETE {2}3 rows, / },
    { form: ["--json=lines"], first: /^\{"type":"run","instanceId":"i1","runId":"r1","state":"COMPLETE",/ },
  ];
  it.each(cases)("with $form", async ({ form, first }) => {
    const dir = await newFolder();
    const isThere = (run: string) =>
      access(join(dir, "runs", "i1", `${run}.json`)).then(
        () => true,
        () => false,
      );
    const seen: { text: string; committed: boolean[] }[] = [];
    const out = async (data: string | Uint8Array) => {
      const committed = await Promise.all(["r1", "r2", "r3", "r4"].map(isThere));
      seen.push({ text: String(data), committed });
      return true;
    };
    const one = ["--parallel-runs", "1"];
    expect((await runInside([...finished(dir), ...one, ...form], { out })).status).toBe(0);
    expect(seen[0]!.text).toMatch(first);
    expect(seen.map(({ committed }) => committed.filter(Boolean).length)).toEqual([1, 2, 3, 4, 4]);
  });

  it("and not with plain --json, which is one document, and swallows no argument behind it", async () => {
    const dir = await newFolder();
    const written: string[] = [];
    const out = async (data: string | Uint8Array) => written.push(String(data)) > 0;
    const { status } = await runInside([...night(dir), "--json", "i1/r1", "i1/r2"], { out });
    expect([status, written.length]).toEqual([0, 1]);
    expect(JSON.parse(written[0]!)).toMatchObject({
      totals: { runs: 2, fetched: 2, upToDate: 0, failed: 0, notTried: 0, fetchedRows: 6 },
      runs: [{ runId: "r1" }, { runId: "r2" }],
    });
  });

  it("and --json=lines is no option of a command without it", async () => {
    const { status, stderr } = await runInside(["export", "--list", "fills", "--json=lines"]);
    expect(status).toBe(2);
    expect(JSON.parse(stderr).error.message).toContain("unknown option '--json=lines'");
  });
});

describe("a night", () => {
  it("without news is one line a run and one of totals; with --verbose its tables", async () => {
    const dir = await newFolder();
    const first = await runInside(finished(dir));
    expect(plain(first.stdout)).toBe(
      `${[1, 2, 3, 4].map((run) => `i1/r${run}  COMPLETE  3 rows, SIZE in TIME\n`).join("")}4 runs: 4 fetched; 12 rows, SIZE fetched in TIME\n`,
    );
    const second = await runInside(finished(dir));
    expect(plain(second.stdout)).toBe(
      `${[1, 2, 3, 4].map((run) => `i1/r${run}  COMPLETE  up to date\n`).join("")}4 runs: 4 up to date; took TIME\n`,
    );
    expect(second.stderr).toBe("");
    expect((await runInside([...finished(dir), "-v"])).stdout).toMatch(
      /^ {2}fills +COMPLETE +3 +3 +counted$/m,
    );
  });

  it("says with -q only what is wrong", async () => {
    const dir = await newFolder();
    expect(await runInside([...finished(dir), "-q"])).toEqual({ status: 0, stdout: "", stderr: "" });
    const other = await newFolder();
    const wrong = await withBroken("r2", () => runInside([...finished(other), "-q"]));
    expect(wrong.status).toBe(3);
    expect(wrong.stdout).toMatch(/^i1\/r2 {2}INCOMPLETE {2}generation 1\n/);
    expect(wrong.stdout).toContain("the store broke");
    expect(wrong.stdout).toMatch(/^ {2}hint for fills: /m);
    expect(wrong.stdout).not.toMatch(/i1\/r[134]|runs:/);
    const { stdout } = await runInside([...finished(dir), "-q", "--json=lines"]);
    expect(objects(stdout).map(({ type }) => type)).toEqual(["run", "run", "run", "run", "totals"]);
  });

  it("counts each run in one class", async () => {
    const dir = await newFolder();
    await runInside([...night(dir), "i1/r1"]);
    const run = ["i1/r1", "i1/r2", "i1/r3", "i1/r9"];
    const { status, stdout } = await withBroken("r3", () => runInside([...night(dir), ...run]));
    expect(status).toBe(9);
    expect(plain(stdout)).toContain(
      "\n4 runs: 1 up to date, 1 fetched, 1 incomplete, 1 failed; 3 rows, SIZE fetched in TIME\n",
    );
    const told = objects((await runInside([...night(dir), "--json=lines", ...run])).stdout);
    expect(told.at(-1)).toMatchObject({
      ...{ type: "totals", exit: 9, runs: 4, upToDate: 2, fetched: 1, failed: 1, notTried: 0 },
      fetchedRows: 3,
    });
  });

  it("tells of runs that were not tried, of many by their number", async () => {
    const runs = Array.from({ length: 14 }, (_, index) => `i1/r${index + 1}`);
    const dir = await newFolder();
    const nowhere = ["--gateway", "http://127.0.0.1:9/api/v1", "--archive", dir, "--retries", "0"];
    const { stdout } = await runInside(["archive", ...nowhere, ...runs]);
    expect(stdout.match(/^i1\/r\d+ +not tried$/gm)).toHaveLength(10);
    expect(plain(stdout)).toContain("3 more runs not tried\n14 runs: 1 failed, 13 not tried; took TIME\n");
    const told = objects((await runInside(["archive", ...nowhere, ...runs, "--json=lines"])).stdout);
    expect(told.filter(({ type }) => type === "not_tried")).toHaveLength(13);
  });
});

describe("a standard output", () => {
  it("whose reader leaves does not end the job", async () => {
    const dir = await newFolder();
    expect((await runInside(finished(dir), { out: async () => false })).status).toBe(0);
    expect((await runInside(finished(dir))).stdout).toContain("4 runs: 4 up to date");
  });

  it("that fails does not end the job either, and is its error at the end", async () => {
    const dir = await newFolder();
    const full = RunvaultError.from(Object.assign(new Error("no space"), { code: "ENOSPC" }));
    const { status, stderr } = await runInside(finished(dir), { out: () => Promise.reject(full) });
    expect(status).toBe(7);
    expect(stderr.match(/storage_full/g)).toHaveLength(1);
    expect((await runInside(finished(dir))).stdout).toContain("4 runs: 4 up to date");
  });
});

describe("words for an end that cannot be remembered", () => {
  it.each([["text"], ["--json=lines"]])("are a failure, and the report is whole: %s", async (form) => {
    const dir = await newFolder();
    await runInside([...night(dir), "i1/r1"]);
    let told = "";
    const out = async (text: string | Uint8Array) => {
      // between the first run and the failure there is no folder to write to
      if (told === "") await rename(dir, `${dir}-away`);
      told += text;
      return true;
    };
    let failures = "";
    const err = (text: string) => {
      if (failures === "") renameSync(`${dir}-away`, dir);
      failures += text;
    };
    const json = form === "text" ? [] : [form];
    const args = [...night(dir), "i1/r1", "i1/r2", "--finished-status", "DONE", ...json];
    const { status } = await runInside(args, { out, err });
    expect([status, failures]).toEqual([7, expect.stringContaining(dir)]);
    if (form === "text") expect(told).toContain("\n2 runs: 1 up to date, 1 ");
    else expect(objects(told).at(-1)).toMatchObject({ type: "totals", exit: 7, runs: 2, upToDate: 1 });
  });
});

test("runs of a second gateway with the same instance are taken with one warning that names the first", async () => {
  const dir = await newFolder();
  expect((await runInside([...night(dir), "i1/r1", "i1/r2"])).stderr).toBe("");
  expect((await runInside([...night(dir), "i1/r3"])).stderr).toBe("");
  const second = new ManyRuns(1, 5);
  for (const one of second.sources.slice(0, 3)) second.gone.add(one);
  const other = await serve({ source: second, host: "127.0.0.1", port: 0 });
  onTestFinished(() => other.close());
  const { status, stderr } = await runInside([...night(dir), "--gateway", other.url, "i1/r4", "i1/r5"]);
  expect([status, stderr]).toEqual([
    0,
    `warning: the archive holds runs of i1 from another gateway, ${server.url}; unless it is the same gateway at a new address, use another archive, because the runs of both would be mixed\n`,
  ]);
});

describe("--dry-run", () => {
  it("sums up, and goes on behind a run that cannot be planned", async () => {
    const dir = await newFolder();
    await runInside([...night(dir), "i1/r1"]);
    const all = ["i1/r1", "i1/r2", "i1/r3", "i1/r4"];
    const plan = (...args: string[]) =>
      withUnknown("r2", () => runInside([...night(dir), "--dry-run", ...args]));
    const { status, stdout, stderr } = await plan(...all);
    expect(status).toBe(9);
    expect(stderr).toContain("runvault: run_not_found: ");
    expect(stdout).toMatch(
      /^i1\/r1 {2}up to date\ni1\/r2 {2}failed: run_not_found\n\ni1\/r3 {2}status FINISHED\n/,
    );
    expect(stdout).toMatch(
      /\n4 runs: 1 up to date, 2 to fetch, 1 failed; 6 rows in 2 slices, .* of text\nabout .* of disk needed by what could be planned, .* free; nothing was fetched\n$/,
    );
    const document = JSON.parse((await plan("--json", ...all)).stdout);
    expect(document).toMatchObject({
      // of the run that failed nobody knows
      ...{ exit: 9, fits: null, neededBytes: expect.any(Number) },
      totals: { runs: 4, upToDate: 1, toFetch: 2, failed: 1, slices: 2, rows: 6 },
    });
    expect(document.runs.map((run: { error: { code: string } | null }) => run.error?.code)).toEqual([
      ...[undefined, "run_not_found", undefined, undefined],
    ]);
    const lines = objects((await plan("--json=lines", ...all)).stdout);
    expect(lines.map(({ type }) => type)).toEqual(["plan", "plan", "plan", "plan", "totals"]);
    expect(lines.at(-1)).toMatchObject({ rows: 6, neededBytes: document.neededBytes });
  });

  it("of a list is one line a run", async () => {
    const dir = await newFolder();
    await runInside([...night(dir), "i1/r1"]);
    const { stdout } = await runInside([...finished(dir), "--dry-run"]);
    expect(plain(stdout)).toMatch(
      /^i1\/r1 {2}up to date\ni1\/r2 {2}status FINISHED {2}3 rows in 1 slice, about SIZE\ni1\/r3 /,
    );
    await runInside(finished(dir));
    expect((await runInside([...finished(dir), "--dry-run"])).stdout).toMatch(
      /\n4 runs: 4 up to date; nothing to fetch\n$/,
    );
  });

  it("that cannot plan all runs does not say that there is nothing to fetch", async () => {
    const dir = await newFolder();
    const { stdout } = await withUnknown("r2", () => runInside([...night(dir), "--dry-run", "i1/r2"]));
    expect(stdout).toBe("i1/r2  failed: run_not_found\n1 run: 1 failed; nothing was fetched\n");
  });
});
