import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { formatRun } from "../../src/model/run-argument.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { degenerateArchive } from "../fixtures/degenerate/degenerate-archive.ts";
import { degeneratePages } from "../fixtures/degenerate/degenerate-runs.ts";
import { foreignMarkup, textOf } from "../fixtures/degenerate/page-text.ts";

/** What no page says in place of a number, each with what stands around it. */
const noNumbers = /.{0,40}(?:\b(?:NaN|undefined|null)\b|(?<!-)\bInfinity\b|[-−]0(?:\.0+)?(?![\d.])).{0,20}/g;

describe("the page of a run with", () => {
  test.each(degeneratePages)("$name says so, and nothing that is no number", async (page) => {
    await using archive = await degenerateArchive(page);
    const out = join(archive.folder, "page.html");
    const instruments = archive.instruments === null ? [] : ["--instruments", archive.instruments];
    const args = ["--archive", archive.dir, "--out", out, ...instruments, ...(page.args ?? [])];
    const { status, stderr } = await runInside(["report", formatRun(archive.ref), ...args]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const html = await readFile(out, "utf8");
    const text = textOf(html);
    // not by toMatch: its message would be the page
    const missing = page.says.filter((said) =>
      typeof said === "string" ? !text.includes(said) : !said.test(text),
    );
    expect(missing).toEqual([]);
    expect(text.match(noNumbers) ?? []).toEqual([]);
    expect(foreignMarkup(html)).toEqual([]);
  });
});
