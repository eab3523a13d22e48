import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cellOf, docsTable, pageFaults, pageOutcome } from "../fixtures/foreign/page-faults.ts";
import { type Scheme, schemes } from "../fixtures/foreign/paged.ts";
import { trialCount } from "../fixtures/trials/trials.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-page-faults-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const table = docsTable();

test("page-faults.md has a row of each fault", () => {
  expect([...table.keys()]).toEqual(Object.keys(pageFaults));
});

/** The schemes to try a fault with: two in turn, and those that a cell names; all in trials. */
function schemesFor(cell: string, nth: number): Scheme[] {
  const all = Object.keys(schemes) as Scheme[];
  const inTurn = Array.from({ length: trialCount(2) }, (_, index) => all[(2 * nth + index) % all.length]!);
  return all.filter((scheme) => inTurn.includes(scheme) || cell.includes(`; by ${scheme} `));
}

describe.each(Object.keys(pageFaults).map((fault, nth) => ({ fault, nth })))("$fault", ({ fault, nth }) => {
  const cells = [true, false].flatMap((total) => {
    const cell = table.get(fault)?.[total ? 0 : 1] ?? "–";
    return cell === "–"
      ? []
      : schemesFor(cell, nth + Number(total)).map((scheme) => ({ scheme, total, cell }));
  });
  test.each(cells)("pages by $scheme, total: $total", async ({ scheme, total, cell }) => {
    const { outcome, said } = await pageOutcome(fault, scheme, total, folder);
    expect(outcome, said).toBe(cellOf(cell, scheme));
  });
});
