import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AgainstReport, againstReportSchema } from "../../../src/analytics/against/against-report.ts";
import { type AgainstOptions, compareRuns } from "../../../src/analytics/against/compare-runs.ts";
import { exactOf } from "../../../src/analytics/instruments/instrument.ts";
import type { Archive } from "../../../src/archive/archive.ts";
import { type BookFaultKind, parseBookFault } from "../../../src/simulator/books/book-fault.ts";
import { openSimulator, type SimulatorOptions } from "../../../src/simulator/simulator.ts";
import { archived, currenciesOf } from "../../fixtures/archive/reconciled-world.ts";
import { nanos } from "../../fixtures/source/book-check.ts";

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "runvault-against-"));
});
afterAll(async () => {
  await rm(dir, { recursive: true, force: true });
});

const run = { instanceId: "alpha-1", runId: "2022-01-01-001" };
const mixed = {
  rows: 9_000,
  symbols: 3,
  currencies: ["USD", "EUR"],
  transfers: 5,
  fundingMs: 3_600_000,
};
const instruments = currenciesOf({ "BTC-PERP": "USD", "BTC-PERP-2": "EUR", "BTC-PERP-3": "USD" });

const options: AgainstOptions = {
  instruments,
  match: "order",
  withinNs: null,
  priceWithin: null,
  tolerance: null,
  session: "utc",
  allowIncomplete: false,
  memoryLimitMb: 512,
};

const archives = new Map<string, Promise<Archive>>();

/** An archive of a world's run, which is only read: made once. */
function archiveOf(world: Partial<SimulatorOptions>): Promise<Archive> {
  const key = JSON.stringify(world);
  const known = archives.get(key) ?? newArchive(world);
  archives.set(key, known);
  return known;
}

async function newArchive(world: Partial<SimulatorOptions>): Promise<Archive> {
  await using source = await openSimulator({ runs: 1, failed: 0, cacheDir: dir, ...mixed, ...world });
  return await archived(dir, source, (await source.runs("alpha-1"))![0]!);
}

async function compared(
  here: Archive,
  there: Archive,
  more: Partial<AgainstOptions> = {},
): Promise<AgainstReport["against"]> {
  const { report } = await compareRuns(
    { archive: here, run },
    { archive: there, run },
    { ...options, ...more },
  );
  return againstReportSchema.parse(report).against;
}

/** An amount of at most 18 decimals in units of the last. */
function units(text: string): bigint {
  const [whole = "", fraction = ""] = text.replace("-", "").split(".");
  const value = BigInt(whole + fraction.padEnd(18, "0"));
  return text.startsWith("-") ? -value : value;
}

function expectPartsToAddUp({ equity }: AgainstReport["against"]): void {
  let days = 0;
  for (const series of equity!) {
    for (const { here, there, difference, parts } of [...series.days, series.last!, series.largest!]) {
      days++;
      expect(units(here) - units(there)).toBe(units(difference));
      expect(Object.values(parts).reduce((sum, part) => sum + units(part), 0n)).toBe(units(difference));
    }
  }
  expect(days).toBeGreaterThan(0);
}

describe.each(["order", "time"] as const)("runs matched by %s", (match) => {
  const limits = match === "time" ? { match, withinNs: 5_000_000_000n } : { match };

  test("a run against itself is the same in everything", async () => {
    const archive = await archiveOf({});
    const found = await compared(archive, archive, limits);
    expect(found.verdict).toBe("SAME");
    expect(found.reasons).toEqual([]);
    expect(found.fills).toMatchObject({ beyond: 0, onlyHere: { count: 0 }, onlyThere: { count: 0 } });
    expect(found.fills!.equal).toBe(found.fills!.here);
    expect(found.fills!.here).toBeGreaterThan(100);
    for (const { different, sum, n } of found.fills!.deltas)
      expect([different, sum, n > 0]).toEqual([0, "0", true]);
    expect(found.equity!.map(({ different, sessions }) => [different, sessions > 0])).toEqual([
      [0, true],
      [0, true],
    ]);
    for (const { last } of found.equity!)
      for (const part of Object.values(last!.parts)) expect(part).toBe("0");
  });

  test.each<[BookFaultKind, { onlyHere: number; onlyThere: number; beyond: number }, string[]]>([
    ["lose-fill", { onlyHere: 0, onlyThere: 1, beyond: 0 }, ["onlyThere", "events"]],
    ["double-fill", { onlyHere: 1, onlyThere: 0, beyond: 0 }, ["onlyHere", "events"]],
    ["shift-fee", { onlyHere: 0, onlyThere: 0, beyond: 1 }, ["fees", "rest"]],
    ["lose-transfer", { onlyHere: 0, onlyThere: 0, beyond: 0 }, ["transfers", "rest"]],
  ])("%s against its clean twin is found, and nothing else", async (kind, counts, expected) => {
    const clean = await archiveOf({});
    const faulty = await archiveOf({ bookFaults: [parseBookFault(`${kind}@*`)] });
    const found = await compared(faulty, clean, limits);
    const { onlyHere, onlyThere, beyond, equal, matched } = found.fills!;
    expect({ onlyHere: onlyHere.count, onlyThere: onlyThere.count, beyond }).toEqual(counts);
    expect(matched - equal).toBe(counts.beyond);
    expectPartsToAddUp(found);
    const parts = new Set(
      found.equity!.flatMap(({ last }) =>
        Object.entries(last!.parts).flatMap(([name, value]) => (value === "0" ? [] : [name])),
      ),
    );
    // a lost fill changes what is held, and so the funding; a fee or transfer is wrong in its row alone, whose equity the
    // rest takes back
    expect(parts).toEqual(new Set(expected));
  });
});

test("runs of other seeds differ, and their parts add up at every session's end", async () => {
  const live = await archiveOf({ edge: 20 });
  for (const accounting of ["spot", "margin"] as const) {
    const backtest = await archiveOf({ seed: "7", accounting });
    for (const match of ["order", "time"] as const) {
      const found = await compared(live, backtest, { match, withinNs: 600_000_000_000n });
      expect(found.verdict).toBe("DIFFERS");
      expect(found.fills!.matched).toBeGreaterThan(0);
      expectPartsToAddUp(found);
      // both books balance, so that fills, marks and money that moved explain all of it
      for (const { days, last } of found.equity!) {
        expect(last!.difference).not.toBe("0");
        for (const { parts } of days) expect(parts.rest).toBe("0");
      }
    }
  }
});

test("what is within the tolerance and the limits is no difference", async () => {
  const clean = await archiveOf({});
  const faulty = await archiveOf({ bookFaults: [parseBookFault("shift-fee@*")] });
  const found = await compared(faulty, clean, { tolerance: exactOf("0.000000001") });
  expect(found).toMatchObject({ verdict: "SAME", fills: { beyond: 0 } });
  expect(found.fills!.matched - found.fills!.equal).toBe(1);
  const fee = found.fills!.deltas.filter(({ what, different }) => what === "fee" && different > 0);
  expect(fee.map(({ sum }) => nanos(sum.replace("-", "")))).toEqual([1n]);
});

test("fills of both without limits in time are matched no further than the price allows", async () => {
  const live = await archiveOf({});
  const backtest = await archiveOf({ seed: "7" });
  const near = await compared(live, backtest, { match: "time", withinNs: null, priceWithin: exactOf("1") });
  const any = await compared(live, backtest, { match: "time", withinNs: null });
  expect(near.fills!.matched).toBeLessThan(any.fills!.matched);
  const cost = near.fills!.deltas.find(({ what }) => what === "cost")!;
  for (const end of [cost.quantiles.min, cost.quantiles.max])
    expect(Math.abs(Number(end))).toBeLessThanOrEqual(1);
});

test("runs without fills are not the same for want of any", async () => {
  const quiet = await archiveOf({ fills: 0, symbols: 1, currencies: ["USD"], transfers: 0 });
  const found = await compared(quiet, quiet, { instruments: null });
  expect(found.verdict).toBe("NOT COMPARED");
  expect(found.reasons).toContain("neither run has fills");
});
