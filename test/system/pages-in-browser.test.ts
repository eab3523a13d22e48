import { mkdtemp, rm, stat } from "node:fs/promises";
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
import { degenerateArchive } from "../fixtures/degenerate/degenerate-archive.ts";
import { degeneratePages } from "../fixtures/degenerate/degenerate-runs.ts";
import { lookAtPage, type PageLook } from "../fixtures/report/look-at-page.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

describe.skipIf(!requires("chromium"))("the page in a browser", () => {
  let browser: Browser;
  let folder: string;
  let runs: string[];

  beforeAll(async () => {
    browser = await launcher.launch({ executablePath: chromium, args: ["--no-sandbox"] });
    folder = await mkdtemp(join(tmpdir(), "runvault-pages-"));
    const source = await openSimulator({
      ...{ runs: 2, rows: 12_000, failed: 0, symbols: 2, accounting: "margin", edge: 10, transfers: 2 },
      cacheDir: join(folder, "worlds"),
    });
    const archive = await openArchive(join(folder, "archive"), { create: true });
    runs = [];
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
    await report("one", runs[1]!, "--session", "bars");
    await report("two", ...runs, "--session", "bars");
  }, 120_000);

  afterAll(async () => {
    await browser?.close();
    await rm(folder, { recursive: true, force: true });
  });

  const page = (name: string) => join(folder, `${name}.html`);

  async function report(name: string, ...args: readonly string[]): Promise<void> {
    const { status, stderr } = await runInside([
      ...["report", "--archive", join(folder, "archive"), "--out", page(name)],
      ...args,
    ]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  }

  const looks: readonly (readonly [string, PageLook])[] = [
    ["a desktop, light", { width: 1120, scheme: "light" }],
    ["a desktop, dark", { width: 1120, scheme: "dark" }],
    ["a tablet, light", { width: 820, scheme: "light" }],
    ["a phone, light", { width: 390, scheme: "light" }],
    ["a phone, dark", { width: 390, scheme: "dark" }],
    ["paper", { width: 703, scheme: "dark", media: "print" }],
  ];

  describe.each(["one", "two"])("of %s", (name) => {
    test.each(looks)("has no fault on %s", async (_, look) => {
      expect(await lookAtPage(browser, page(name), look)).toEqual([]);
    });
  });

  test("is printed on pages of A4", async () => {
    const opened = await browser.newPage();
    await opened.goto(`file://${page("one")}`);
    const pdf = await opened.pdf({ preferCSSPageSize: true, printBackground: true });
    await opened.close();
    const boxes = pdf.toString("latin1").match(/\/MediaBox ?\[[^\]]*\]/g) ?? [];
    expect(boxes.length).toBeGreaterThan(3);
    expect(new Set(boxes.map((box) => box.replaceAll(/\.\d+/g, "").replaceAll(/\s+/g, " ")))).toEqual(
      new Set([boxes[0]!.replaceAll(/\.\d+/g, "").replaceAll(/\s+/g, " ")]),
    );
    expect(boxes[0]).toMatch(/0 0 59[45][\d.]* 84[12]/);
  });

  test("is below 3 MB", async () => {
    expect((await stat(page("two"))).size).toBeLessThan(3_000_000);
  });

  test.each(degeneratePages)("has no fault of a run with $name", async (degenerate) => {
    await using archive = await degenerateArchive(degenerate);
    const out = join(archive.folder, "page.html");
    const instruments = archive.instruments === null ? [] : ["--instruments", archive.instruments];
    const args = ["--archive", archive.dir, "--out", out, ...instruments, ...(degenerate.args ?? [])];
    const { status, stderr } = await runInside(["report", formatRun(archive.ref), ...args]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(await lookAtPage(browser, out, { width: 1120, scheme: "light" })).toEqual([]);
    expect(await lookAtPage(browser, out, { width: 390, scheme: "dark" })).toEqual([]);
  });
});
