import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunRef } from "../../src/model/source.ts";
import { parseBookFault } from "../../src/simulator/books/book-fault.ts";
import { openSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { bookBreaks, nanos, rowsOf } from "../fixtures/source/book-check.ts";

const currencies = ["USD", "EUR"];
const minute = 60_000_000_000n;
let cacheDir: string;
let now = 0n;

beforeAll(async () => {
  cacheDir = await mkdtemp(join(tmpdir(), "simulator-live-"));
});
afterAll(async () => {
  await rm(cacheDir, { recursive: true, force: true });
});

async function growing(
  accounting: "spot" | "margin",
  faults: readonly string[] = [],
): Promise<{ world: Simulator; run: RunRef }> {
  const books = { accounting, currencies, symbols: 3, transfers: 6, fundingMs: 3_600_000 };
  const world = await openSimulator({
    ...books,
    bookFaults: faults.map(parseBookFault),
    ...{ cacheDir, rows: 12_000, runs: 2, growing: true, clock: () => now },
  });
  now = 2n ** 62n;
  const run = (await world.runs("alpha-1"))!.at(-1)!;
  return { world, run };
}

test.each(["spot", "margin"] as const)(
  "a run that goes on tells of each currency, in %s",
  async (accounting) => {
    const { world, run } = await growing(accounting);
    await using _world = world;
    const whole = await rowsOf(world, run, "fills");
    const { started, ended, complete } = world.span(run);
    let positions = 0;
    for (let part = 1n; part < 6n; part += 1n) {
      now = started + ((ended - started) * part) / 6n;
      const points = await rowsOf(world, run, "equity");
      const summary = JSON.parse(Buffer.from((await world.document(run, "summary"))!).toString());
      expect(summary.currency).toBe("USD");
      expect(summary.final_equity).toBe(points.filter(({ currency }) => currency === "USD").at(-1)!.equity);
      const fees = (await rowsOf(world, run, "fills")).filter(({ fee_currency }) => fee_currency === "USD");
      expect(nanos(summary.fees)).toBe(fees.reduce((sum, { fee }) => sum + nanos(fee!), 0n));

      const { result: accounts } = await world.query("alpha-1", "accounts");
      const { result: portfolios } = await world.query("alpha-1", "portfolios");
      if (accounts?.case !== "accounts" || portfolios?.case !== "portfolios")
        throw new Error("another answer");
      const told = accounts.value.accounts!;
      expect(told.map(({ currency }) => currency)).toEqual(["EUR", "USD"]);
      for (const [number, { currency, cash, equity }] of told.entries()) {
        const point = points.find((row) => row.currency === currency && row.equity === equity);
        expect(point?.cash).toBe(cash);
        const portfolio = portfolios.value.portfolios![number]!;
        expect(portfolio).toMatchObject({ currency, equity });
        let unrealized = 0;
        for (const { symbol, quantity, averagePrice, markPrice } of portfolio.positions!) {
          positions += 1;
          const held = whole
            .filter((fill) => fill.symbol === symbol && BigInt(fill.ts_event!) <= BigInt(point!.ts_event!))
            .reduce((sum, fill) => sum + nanos(fill.quantity!) * (fill.side === "BUY" ? 1n : -1n), 0n);
          expect(nanos(quantity!)).toBe(held);
          unrealized += (Number(markPrice) - Number(averagePrice)) * Number(quantity);
        }
        expect(unrealized).toBeCloseTo(Number(point!.unrealized), 3);
      }
    }
    expect(positions).toBeGreaterThan(6);
    now = complete;
    expect(await bookBreaks(world, run, accounting)).toEqual([]);
  },
);

test("figures of several currencies are told apart live", async () => {
  const { world, run } = await growing("spot");
  await using _world = world;
  now = world.span(run).ended - minute;
  const feeds = await world.feeds("alpha-1", "portfolio.core");
  expect(feeds.map(({ identity }) => identity)).toEqual([[], ["name", "window", "currency"]]);
  const stop = new AbortController();
  for await (const { table, rows } of feeds[0]!.values(stop.signal)) {
    expect(table).toBe("equity");
    expect(rows.map((line) => JSON.parse(line).currency).sort()).toEqual(["EUR", "USD"]);
    stop.abort();
  }
});

test("a run that begins when asked has books like the others, without their faults", async () => {
  const { world, run } = await growing("margin", ["skip-state@*"]);
  await using _world = world;
  now = world.span(run).complete + minute;
  expect(await bookBreaks(world, run, "margin")).not.toEqual([]);
  await world.act("alpha-1", "start");
  now += minute;
  // the process takes its time to come up
  for (let round = 0; round < 20 && (await world.runs("alpha-1"))!.length < 3; round += 1) now += minute;
  const begun = (await world.runs("alpha-1"))!.at(-1)!;
  expect(begun.runId).not.toBe(run.runId);
  now += 600n * minute;
  expect((await rowsOf(world, begun, "fills")).length).toBeGreaterThan(0);
  expect(await bookBreaks(world, begun, "margin")).toEqual([]);
});
