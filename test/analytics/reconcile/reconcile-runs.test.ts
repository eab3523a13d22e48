import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseBookFault } from "../../../src/simulator/books/book-fault.ts";
import { openSimulator, type SimulatorOptions } from "../../../src/simulator/simulator.ts";
import { faultFindings } from "../../fixtures/analytics/fault-findings.ts";
import { currenciesOf, reconciled } from "../../fixtures/archive/reconciled-world.ts";
import { recordings, requires } from "../../fixtures/command/requirement.ts";
import { bookBreaks, rowsOf } from "../../fixtures/source/book-check.ts";

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "runvault-reconcile-"));
});
afterAll(async () => {
  await rm(dir, { recursive: true, force: true });
});

const mixed = {
  rows: 9_000,
  symbols: 3,
  currencies: ["USD", "EUR"],
  transfers: 5,
  fundingMs: 3_600_000,
  runs: 1,
};
const mixedInstruments = currenciesOf({ "BTC-PERP": "USD", "BTC-PERP-2": "EUR", "BTC-PERP-3": "USD" });

async function worldOf(options: Partial<SimulatorOptions>) {
  const world = await openSimulator({ runs: 1, failed: 0, cacheDir: dir, ...options });
  const run = (await world.runs("alpha-1"))![0]!;
  return { world, run };
}

const recorded = (
  requires("recordings") ? ["btc-perp-1m-2022-01.csv.gz", "gbpusd-m1-bid-2012.csv.gz"] : []
).map((name) => join(recordings, name));

describe.each<[string, Partial<SimulatorOptions>]>([
  ["one symbol", { rows: 20_000 }],
  ["many fills to an order", { fills: 8_000 }],
  ["a failed run", { rows: 20_000, failed: 1 }],
  ["three symbols, spot", { rows: 20_000, symbols: 3, transfers: 6, fundingMs: 3_600_000 }],
  [
    "three symbols, margin, winning",
    { rows: 20_000, symbols: 3, accounting: "margin", transfers: 6, fundingMs: 3_600_000, edge: 20 },
  ],
  ...recorded.map((bars): [string, Partial<SimulatorOptions>] => [bars.split("/").at(-1)!, { bars }]),
])("a clean run: %s", (_, options) => {
  test("balances at every point at tolerance zero", { timeout: 120_000 }, async () => {
    const { world, run } = await worldOf(options);
    await using _world = world;
    const found = await reconciled(dir, world, run);
    expect(
      found.checks.map(({ number, verdict, breaks, reason }) => [number, verdict, breaks, reason]),
    ).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((number) => [number, "HOLDS", 0, null]));
    const points = (await rowsOf(world, run, "equity")).length;
    expect(found.checks.slice(0, 4).map(({ rows }) => rows)).toEqual([points, points, points, points]);
    expect(found).toMatchObject({
      verdict: "HOLDS",
      accounting: options.accounting ?? "spot",
      costs: "average",
    });
  });
});

describe.each(["spot", "margin"] as const)("two currencies in books kept as %s", (accounting) => {
  test("balance", async () => {
    const { world, run } = await worldOf({ ...mixed, accounting });
    await using _world = world;
    const found = await reconciled(dir, world, run, { instruments: mixedInstruments });
    expect(found.checks.map(({ verdict }) => verdict)).toEqual(Array(8).fill("HOLDS"));
    expect(found.accounting).toBe(accounting);
  });

  test.each(faultFindings)("%s breaks check %i alone, at its row", async (kind, number, what) => {
    const { world, run } = await worldOf({ ...mixed, accounting, bookFaults: [parseBookFault(`${kind}@*`)] });
    await using _world = world;
    const found = await reconciled(dir, world, run, { instruments: mixedInstruments });
    const wrong = found.checks.filter(({ verdict }) => verdict !== "HOLDS");
    expect(wrong.map((check) => [check.number, check.verdict])).toEqual([[number, "BREAKS"]]);
    const [first] = wrong[0]!.first;
    expect(wrong[0]!.first.length).toBe(1);
    expect(first!.what).toContain(what);
    // where the independent reckoning of the simulator's tests finds it
    const breaks = await bookBreaks(world, run, accounting);
    const seqs = first!.rows.map(({ seq }) => seq);
    if (number < 6) {
      const [ts, currency] = breaks[0]!.at.split(" ");
      const point = (await rowsOf(world, run, "equity")).find(
        (row) => row.ts_event === ts && row.currency === currency,
      )!;
      expect(first!.rows.at(-1)).toEqual({ table: "equity", seq: point.seq });
      expect(first!.unit).toBe(currency);
      if (kind === "shift-fee") expect(first!.rows.some(({ table }) => table === "fills")).toBe(true);
    } else if (number === 6) {
      const orders = (await rowsOf(world, run, "orders")).filter(({ seq }) => seqs.includes(seq!));
      const fills = (await rowsOf(world, run, "fills")).filter(({ seq }) => seqs.includes(seq!));
      const ids = new Set([...orders, ...fills].map(({ client_order_id }) => client_order_id));
      expect([...ids].some((id) => breaks[0]!.at.includes(id!))).toBe(true);
    } else expect(first!.rows).toMatchObject([{ table: "metrics" }]);
  });
});
