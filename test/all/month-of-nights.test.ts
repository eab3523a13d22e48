import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { monthTables } from "../fixtures/source/month-of-runs.ts";
import { archiveNights, type Nights } from "../fixtures/source/nights.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-nights-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

/** Ranges of at most 31 days, also where a bound is open. */
const month = { longestNs: 31n * 86_400_000_000_000n };

const gateways: Record<string, Omit<Nights, "on">> = {
  "has facts and versions, and another port each night": { manners: {}, moves: true },
  "has neither, as the interface document shows": { manners: { literal: true } },
  "answers 200 and nothing to runs it does not know": { manners: { literal: true, unknownRuns: "empty" } },
  "refuses ranges of more than 31 days": { manners: { literal: true, ...month, longer: "refused" } },
  "cuts ranges down to 31 days, and has no versions": {
    manners: { unversioned: true, ...month, longer: "cutDown" },
  },
  "keeps rows for eight days": { manners: { retentionDays: 8 } },
};

// a night takes a second with two cores, and several times as long beside other work
test.each(Object.entries(gateways))(
  "a month of a gateway that %s",
  { timeout: 600_000 },
  async (name, nights) => {
    const dir = join(folder, name.replaceAll(/\W/g, "-"));
    // each night where rows are forgotten, and else each third one
    const all = [...Array(30).keys()];
    const on = all.filter((night) => nights.manners.retentionDays !== undefined || night % 3 === 2);
    const { runs, unfinished } = await archiveNights(dir, { ...nights, on });
    expect(runs).toBe(20);
    expect(unfinished).toEqual(Array(monthTables.length).fill("b8 OPEN"));
  },
);
