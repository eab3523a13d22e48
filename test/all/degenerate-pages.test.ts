import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Browser, chromium as launcher } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { formatRun } from "../../src/model/run-argument.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { chromium, requires } from "../fixtures/command/requirement.ts";
import { degenerateArchive } from "../fixtures/degenerate/degenerate-archive.ts";
import { degeneratePages } from "../fixtures/degenerate/degenerate-runs.ts";
import { foreignMarkup, textOf } from "../fixtures/degenerate/page-text.ts";
import { lookAtPage } from "../fixtures/report/look-at-page.ts";

/** What no page says in place of a number, each with what stands around it. */
const noNumbers = /.{0,40}(?:\b(?:NaN|undefined|null)\b|(?<!-)\bInfinity\b|[-−]0(?:\.0+)?(?![\d.])).{0,20}/g;

const isBrowserThere = requires("chromium");

describe("the page of a run with", () => {
  let browser: Browser | null = null;

  beforeAll(async () => {
    if (isBrowserThere) {
      browser = await launcher.launch({ executablePath: chromium, args: ["--no-sandbox"] });
    }
  });

  afterAll(async () => {
    await browser?.close();
  });

  test.each(degeneratePages)("$name says so, nothing that is no number, and has no fault", async (page) => {
    await using archive = await degenerateArchive(page);
    const out = join(archive.folder, "page.html");
    const instruments = archive.instruments === null ? [] : ["--instruments", archive.instruments];
    const args = ["--archive", archive.dir, "--out", out, ...instruments, ...(page.args ?? [])];
    const { status, stderr } = await runInside(["report", formatRun(archive.ref), ...args]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const html = await readFile(out, "utf8");
    // whose random name may look like a number
    const text = textOf(html).replaceAll(archive.folder, "FOLDER");
    // not by toMatch: its message would be the page
    const missing = page.says.filter((said) =>
      typeof said === "string" ? !text.includes(said) : !said.test(text),
    );
    expect(missing).toEqual([]);
    expect(text.match(noNumbers) ?? []).toEqual([]);
    expect(foreignMarkup(html)).toEqual([]);
    if (browser === null) return;
    const looks = [
      { width: 1120, scheme: "light" },
      { width: 390, scheme: "dark" },
    ] as const;
    expect(await lookAtPage(browser, out, looks)).toEqual([]);
  });
});
