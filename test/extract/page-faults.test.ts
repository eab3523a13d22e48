// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cellOf, docsTable, pageFaults, pageOutcome } from "../fixtures/foreign/page-faults.ts";
import { type Scheme, schemes } from "../fixtures/foreign/paged.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-page-faults-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const names = Object.keys(schemes) as Scheme[];
// each fault of one scheme, with a total: test/all/page-faults.test.ts tries all, and without
const tried = Object.keys(pageFaults).map((fault, nth) => ({ fault, scheme: names[nth % names.length]! }));

test.each(tried)("pages by $scheme, $fault: as page-faults.md says", async ({ fault, scheme }) => {
  const { outcome, said } = await pageOutcome(fault, scheme, true, folder);
  expect(outcome, said).toBe(cellOf(docsTable().get(fault)?.[0], scheme));
  // what is missing is told with both figures
  if (fault === "a row dropped within, each time")
    expect(said).toContain("the gateway announced 40 rows, but sent 39");
});
