import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cellOf, docsTable, pageFaults, pageOutcome } from "../fixtures/foreign/page-faults.ts";
import { type Scheme, schemes } from "../fixtures/foreign/paged.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-page-faults-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const table = docsTable();

test("docs/profiles.md has a row of each fault", () => {
  expect([...table.keys()]).toEqual(Object.keys(pageFaults));
});

describe.each(Object.keys(pageFaults))("%s", (fault) => {
  const cells = [true, false].flatMap((total) => {
    const cell = table.get(fault)?.[total ? 0 : 1] ?? "–";
    return cell === "–" ? [] : (Object.keys(schemes) as Scheme[]).map((scheme) => ({ scheme, total, cell }));
  });
  test.each(cells)("pages by $scheme, total: $total", async ({ scheme, total, cell }) => {
    const { outcome, said } = await pageOutcome(fault, scheme, total, folder);
    expect(outcome, said).toBe(cellOf(cell, scheme));
  });
});
