import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium as launcher } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { archiveRun } from "../../src/extract/run/archive-run.ts";
import { formatRun } from "../../src/model/run-argument.ts";
import { wallClock } from "../../src/model/time.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { chromium, requires } from "../fixtures/command/requirement.ts";
import { archiveDegenerate } from "../fixtures/degenerate/degenerate-archive.ts";
import { textOf } from "../fixtures/degenerate/page-text.ts";
import { lookAtPage, type PageLook } from "../fixtures/report/look-at-page.ts";
import { oddRuns } from "../fixtures/report/odd-runs.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

const looks: readonly PageLook[] = [
  { width: 1120, scheme: "light" },
  { width: 1120, scheme: "dark" },
  { width: 820, scheme: "light" },
  { width: 390, scheme: "light" },
  { width: 390, scheme: "dark" },
  { width: 703, scheme: "dark", media: "print" },
];

describe.skipIf(!requires("chromium"))("the page in a browser", () => {
  let browser: Browser;
  let folder: string;

  beforeAll(async () => {
    browser = await launcher.launch({ executablePath: chromium, args: ["--no-sandbox"] });
    folder = await mkdtemp(join(tmpdir(), "runvault-pages-"));
    const source = await openSimulator({
      ...{
        instances: 2,
        runs: 3,
        rows: 9_000,
        failed: 0,
        symbols: 2,
        accounting: "margin",
        edge: 10,
        transfers: 2,
      },
      cacheDir: join(folder, "worlds"),
    });
    const archive = await openArchive(join(folder, "archive"), { create: true });
    const runs: string[] = [];
    for (const { instanceId, runIds } of await source.instances()) {
      for (const runId of runIds) {
        runs.push(`${instanceId}/${runId}`);
        await archiveRun({
          ...{ source, archive, run: { instanceId, runId }, settings: {}, clock: wallClock },
          ...{
            retry: quickRetry(),
            signal: new AbortController().signal,
            tool: "test",
            duckdb: sharedDuckDB,
          },
        });
      }
    }
    const odd: string[] = [];
    for (const run of oddRuns) odd.push(formatRun(await archiveDegenerate(archive, run)));
    await report("one", runs[1]!);
    await report("two", ...runs.slice(0, 2));
    await report("three", runs[0]!, ...odd.slice(0, 2));
    await report("six", ...runs);
    await report("odd", ...odd, "--no-reconcile");
  }, 240_000);

  afterAll(async () => {
    await browser?.close();
    await rm(folder, { recursive: true, force: true });
  });

  const page = (name: string) => join(folder, `${name}.html`);

  async function report(name: string, ...args: readonly string[]): Promise<void> {
    const { status, stderr } = await runInside([
      ...["report", "--archive", join(folder, "archive"), "--out", page(name)],
      ...["--session", "bars", "--specs", join(folder, `specs-${name}`), ...args],
    ]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  }

  test.each([
    ["one run"],
    ["two runs"],
    ["three runs, of which two are unlike the first"],
    ["six runs"],
    ["odd runs that have nothing in common"],
  ])("of %s has no fault on a desktop, a tablet, a phone and paper, light and dark", async (name) => {
    expect(await lookAtPage(browser, page(name.split(" ")[0]!), looks)).toEqual([]);
  });

  test("of runs that have nothing in common names those that a chart has nothing of", async () => {
    const html = await readFile(page("odd"), "utf8");
    const text = textOf(html);
    expect(text).toContain("No data for [2]");
    expect(text.match(/\b(?:NaN|undefined|Infinity)\b/g) ?? []).toEqual([]);
  });

  test.each(["one", "six"])("of %s is printed on pages of A4", async (name) => {
    const opened = await browser.newPage();
    await opened.goto(`file://${page(name)}`);
    const pdf = await opened.pdf({ preferCSSPageSize: true, printBackground: true });
    await opened.close();
    const boxes = pdf.toString("latin1").match(/\/MediaBox ?\[[^\]]*\]/g) ?? [];
    expect(boxes.length).toBeGreaterThan(3);
    expect(new Set(boxes.map((box) => box.replaceAll(/\.\d+/g, "").replaceAll(/\s+/g, " ")))).toEqual(
      new Set([boxes[0]!.replaceAll(/\.\d+/g, "").replaceAll(/\s+/g, " ")]),
    );
    expect(boxes[0]).toMatch(/0 0 59[45][\d.]* 84[12]/);
  });

  test("is below 3 MB, of six runs too", async () => {
    expect((await stat(page("six"))).size).toBeLessThan(3_000_000);
  });
});
