// @module-tag slow
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { archiveRun } from "../../src/extract/run/archive-run.ts";
import { wallClock } from "../../src/model/time.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { textOf } from "../fixtures/degenerate/page-text.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

let folder: string;
let runs: string[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-report-"));
  const source = await openSimulator({ runs: 2, rows: 3_000, failed: 0, cacheDir: join(folder, "worlds") });
  const archive = await openArchive(join(folder, "archive"), { create: true });
  runs = [];
  for (const { instanceId, runIds } of await source.instances()) {
    for (const runId of runIds) {
      runs.push(`${instanceId}/${runId}`);
      await archiveRun({
        ...{ source, archive, run: { instanceId, runId }, settings: {}, clock: wallClock },
        ...{ retry: quickRetry(), signal: new AbortController().signal, tool: "test", duckdb: sharedDuckDB },
      });
    }
  }
}, 60_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

let pages = 0;
const place = () => join(folder, `page-${++pages}.html`);
const report = (out: string, ...args: readonly string[]) =>
  runInside(["report", "--archive", join(folder, "archive"), "--session", "bars", "--out", out, ...args]);

const known = new Map<string, Promise<string>>();

/** A page that is only read: made once. */
function pageOf(...args: readonly string[]): Promise<string> {
  const key = JSON.stringify(args);
  const page = known.get(key) ?? newPage(...args);
  known.set(key, page);
  return page;
}

async function newPage(...args: readonly string[]): Promise<string> {
  const out = place();
  const { status, stderr } = await report(out, ...args);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return await readFile(out, "utf8");
}

describe("the page of a run", () => {
  test("has the sections in order, each linked, and forbids everything but its own style", async () => {
    const html = await pageOf(runs[1]!);
    const titles = [...html.matchAll(/<h2 [^>]*>([^<]*)<\/h2>/g)].map(([, title]) => title);
    expect(titles).toEqual([
      ...["Figures", "Equity and drawdown", "Monthly returns, %", "Distribution of returns"],
      ...["Rolling Sharpe ratio and volatility", "Exposure", "Trades", "Execution", "Factors"],
      ...["The busiest day", "Event timeline", "Reconciliation", "All figures and their conventions"],
      "Provenance",
    ]);
    const links = [...html.matchAll(/<a href="#([^"]+)">/g)].map(([, id]) => id);
    expect(links.length).toBe(titles.length - 1);
    for (const id of links) expect(html).toContain(`<section id="${id}"`);
    expect(html).toContain(
      `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">`,
    );
    expect(html).toMatch(/^<!doctype html>\n<html lang="en">/);
    expect(html.match(/<h1/g)).toHaveLength(1);
    expect(html).not.toMatch(/<script|https?:\/\/(?!www\.w3\.org|127\.0\.0\.1)/);
  });

  test("has the figures of metrics, the run before beneath, and the verdict of reconcile", async () => {
    const text = textOf(await pageOf(runs[1]!));
    const asked = await runInside(
      ["metrics", "--archive", join(folder, "archive"), "--session", "bars", runs[1]!],
      { columns: 120 },
    );
    const sharpe = /^ +Sharpe +(\S+)$/m.exec(asked.stdout)?.[1]?.replace("-", "−");
    expect(text).toMatch(new RegExp(`Sharpe ${sharpe} before −?[\\d.,]+`));
    expect(text).toContain(`Below: the previous run, ${runs[0]!.split("/")[1]}.`);
    expect(text).toMatch(/the books balance ?: \d of 8 checks hold at tolerance 0/);
    expect(textOf(await pageOf(runs[0]!))).not.toContain("before −");
  });

  test("is the same bytes every time, but for its line of when and by what it was made", async () => {
    const [first, second] = [await pageOf(runs[0]!), await newPage(runs[0]!)];
    const lines = first.split("\n");
    const others = second.split("\n");
    const differing = lines.flatMap((line, at) => (line === others[at] ? [] : [line]));
    expect(others.length).toBe(lines.length);
    expect(differing).toEqual([expect.stringMatching(/^<p class="made">Made .* by runvault /)]);
  });

  test("says that books were not reconciled where that was left out", async () => {
    expect(textOf(await pageOf(runs[0]!, "--no-reconcile"))).toContain(
      "Not checked: --no-reconcile was given",
    );
  });

  test("of several runs has a column a run, and a colour a run", async () => {
    const html = await pageOf(runs[1]!, runs[0]!, "--no-reconcile");
    const text = textOf(html);
    expect(text).toContain("2 runs compared");
    for (const run of runs) expect(text).toContain(run);
    expect(html).toContain("var(--run-2)");
    expect(text).toMatch(/Figure \[1\] \[2\]/);
    expect(text).not.toContain("Beneath: the run before");
  });

  test("shows both runs on the same axes in the order in which they were named", async () => {
    const html = await pageOf(runs[1]!, runs[0]!, "--no-reconcile");
    expect(html.indexOf(`[1] ${runs[1]}`)).toBeGreaterThan(0);
    expect(html).not.toContain(`[1] ${runs[0]}`);
  });
});

describe("what is written", () => {
  test("is said on standard output, in words or as JSON, with the specs beside it", async () => {
    const out = place();
    const told = await report(out, runs[0]!, "--no-reconcile");
    expect(told.stdout).toMatch(new RegExp(`^${out}  [\\d.]+ kB\n$`));
    const specs = join(folder, "specs");
    const { stdout } = await report(
      ...([out, runs[0]!, "--no-reconcile", "--force", "--specs", specs, "--json"] as const),
    );
    const written = JSON.parse(stdout);
    expect(written).toMatchObject({ file: out, bytes: (await stat(out)).size, runs: [runs[0]] });
    const files = (await readdir(specs)).sort();
    expect(files).toContain("equity.vl.json");
    expect(written.specs.map(({ file }: { file: string }) => file).sort()).toEqual(
      files.map((file) => join(specs, file)),
    );
    const again = await report(join(folder, "again.html"), runs[0]!, "--specs", specs);
    expect(again.stderr).toContain("Name another --specs, or set --force to replace it.");
    const spec = JSON.parse(await readFile(join(specs, "equity.vl.json"), "utf8"));
    expect(spec.$schema).toContain("vega-lite");
  });

  test("replaces nothing unless it is told to", async () => {
    const out = place();
    await writeFile(out, "mine");
    const refused = await report(out, runs[0]!);
    expect(refused).toMatchObject({ status: 2, stdout: "" });
    expect(refused.stderr).toContain("--force");
    expect(await readFile(out, "utf8")).toBe("mine");
    expect((await report(out, runs[0]!, "--no-reconcile", "--force")).status).toBe(0);
    expect(await readFile(out, "utf8")).toContain("<!doctype html>");
  });

  test("is no place within the archive", async () => {
    const { status, stderr } = await report(join(folder, "archive", "page.html"), runs[0]!);
    expect(status).toBe(2);
    expect(stderr).toContain("inside the archive");
  });

  test("is nothing where a run is not there, or an option is wrong", async () => {
    const out = place();
    const unknown = await report(out, `${runs[0]!.slice(0, -1)}9`);
    expect(unknown.status).toBe(2);
    expect(unknown.stderr).toContain(`Did you mean ${runs[0]}?`);
    expect((await report(out, runs[0]!, "--fill")).stderr).toContain("--session bars has no days");
    expect((await report(out, ...Array.from({ length: 7 }, (_, at) => `a/${at}`))).status).toBe(2);
    await expect(stat(out)).rejects.toThrow("ENOENT");
  });
});

test("tables that are not proven are refused, unless that is allowed: then it is said at the top", async () => {
  const built = await buildArchive([
    { instanceId: "a", runId: "1", tables: { equity: { state: "INCOMPLETE", rows: 3 } } },
  ]);
  try {
    const out = place();
    const args = ["report", "--archive", built.dir, "a/1", "--out", out];
    const refused = await runInside(args);
    expect({ status: refused.status, stdout: refused.stdout }).toEqual({ status: 4, stdout: "" });
    expect(refused.stderr).toContain("equity of a/1 (INCOMPLETE)");
    await expect(stat(out)).rejects.toThrow("ENOENT");
    expect((await runInside([...args, "--no-reconcile", "--allow-incomplete"])).status).toBe(0);
    const text = textOf(await readFile(out, "utf8"));
    expect(text).toContain("NOT PROVEN, rows may be missing: equity (INCOMPLETE)");
    expect(text.indexOf("NOT PROVEN")).toBeLessThan(text.indexOf("Equity and drawdown"));
  } finally {
    await built.dispose();
  }
});

test("more than six runs are refused, with the reason, before anything is computed", async () => {
  const runs = Array.from({ length: 7 }, (_, at) => ({
    ...{ instanceId: "a", runId: String(at) },
    tables: { equity: { state: "COMPLETE" as const, rows: 3 } },
  }));
  const built = await buildArchive(runs);
  try {
    const out = place();
    const args = ["report", "--archive", built.dir, "--out", out, ...runs.map(({ runId }) => `a/${runId}`)];
    const { status, stderr } = await runInside(args);
    expect(status).toBe(2);
    expect(stderr).toContain("7 runs are too many for one page");
    await expect(stat(out)).rejects.toThrow("ENOENT");
  } finally {
    await built.dispose();
  }
});
