import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSimulator, type SimulatorOptions } from "../../../src/simulator/simulator.ts";
import { recordings, requires } from "../../fixtures/command/requirement.ts";
import { matchesSql } from "../../fixtures/trades/matches-sql.ts";
import { TradeWorld } from "../../fixtures/trades/trade-world.ts";

const recorded = join(recordings, "btc-perp-1m-2022-01.csv.gz");

let cacheDir: string;
beforeAll(async () => {
  cacheDir = await mkdtemp(join(tmpdir(), "runvault-trades-"));
});
afterAll(async () => {
  await rm(cacheDir, { recursive: true, force: true });
});

async function worldOf(options: Partial<SimulatorOptions>): Promise<TradeWorld> {
  const simulator = await openSimulator({ runs: 1, cacheDir, failed: 0, ...options });
  const [instance] = await simulator.instances();
  const run = { instanceId: instance!.instanceId, runId: instance!.runIds[0]! };
  const world = await TradeWorld.open();
  for (const table of ["fills", "bars", "equity"] as const) await world.load(simulator, run, table);
  return world;
}

/** A DECIMAL as the integer that it is kept as. */
function scaled(decimal: unknown): bigint {
  return (decimal as { readonly value: bigint }).value;
}

describe.each([
  ["generated bars", { rows: 60_000 }],
  ["many fills to an order", { fills: 50_000 }],
  ...(requires("recordings") ? [["recorded bars", { bars: recorded }] as const] : []),
] as const)("a simulated run on %s", (_, options) => {
  let world: TradeWorld;
  beforeAll(async () => {
    world = await worldOf(options);
  }, 120_000);
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });

  test("has the matches that SQL finds by cutting cumulative quantities", async () => {
    const trades = await world.read();
    const found: unknown[][] = [];
    trades.walk("match", {
      onMatch: ({ entry, exit, quantity, entryValue, exitValue }) => {
        const { seq, isBuy } = trades.fills;
        const isLong = isBuy[entry] === 1;
        const gross = isLong ? exitValue - entryValue : entryValue - exitValue;
        found.push([seq[entry], seq[exit], isLong, quantity, gross]);
      },
    });
    const result = await world.connection.runAndReadAll(matchesSql("fills"));
    const expected = result
      .getRows()
      .map(([entry, exit, isLong, quantity, gross]) => [
        entry,
        exit,
        isLong,
        scaled(quantity),
        scaled(gross),
      ]);
    expect(expected.length).toBeGreaterThan(100);
    expect(found).toEqual(expected);
  });

  test("has the unrealized profit that the gateway reported, at the last point", async () => {
    const trades = await world.read({ order: "trade_id" });
    const [end] = trades.walk("flat");
    const reported = await world.connection.runAndReadAll(
      `SELECT last(unrealized ORDER BY ts_event, seq),
              last(equity ORDER BY ts_event, seq) - first(equity ORDER BY ts_event, seq)
       FROM equity`,
    );
    const nano = 1_000_000_000n;
    const [unrealized, profit] = reported.getRows()[0]!;
    expect(end!.value - end!.averageCost).toBe(scaled(unrealized) * nano);
    expect(end!.flow + end!.value - end!.fees * nano).toBe(scaled(profit) * nano);
  });
});
