import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SimulatorOptions } from "../../src/simulator/simulator.ts";
import { faultFindings } from "../fixtures/analytics/fault-findings.ts";
import {
  expectBalanced,
  expectFaultFound,
  expectMixedBalanced,
} from "../fixtures/analytics/reconciled-books.ts";
import { requires } from "../fixtures/command/requirement.ts";
import { btc, gbpusd, writeFirstBars } from "../fixtures/source/recorded-bars.ts";

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "runvault-reconcile-"));
});
afterAll(async () => {
  await rm(dir, { recursive: true, force: true });
});

test.each<[string, Partial<SimulatorOptions>]>([
  ["one symbol", { rows: 20_000 }],
  ["many fills to an order", { fills: 8_000 }],
  ["a failed run", { rows: 20_000, failed: 1 }],
  ["three symbols, spot", { rows: 20_000, symbols: 3, transfers: 6, fundingMs: 3_600_000 }],
  [
    "three symbols, margin, winning",
    { rows: 20_000, symbols: 3, accounting: "margin", transfers: 6, fundingMs: 3_600_000, edge: 20 },
  ],
])("a clean run balances at every point at tolerance zero: %s", async (_, options) => {
  expect.hasAssertions();
  await expectBalanced(dir, options);
});

test.runIf(requires("recordings")).each([
  ["btc", btc],
  ["gbpusd", gbpusd],
])("a week of recorded bars balances at every point at tolerance zero: %s", async (name, recording) => {
  expect.hasAssertions();
  const bars = join(dir, `${name}.csv.gz`);
  writeFirstBars(recording, 7 * 24 * 60, bars);
  await expectBalanced(dir, { bars });
});

// test/analytics/reconcile/reconcile-runs.test.ts has each with the other accounting
describe("two currencies", () => {
  test("in books kept as margin balance", async () => {
    expect.hasAssertions();
    await expectMixedBalanced(dir, "margin");
  });

  test.each(
    faultFindings.map(
      (finding, place) => [finding[0], place % 2 === 0 ? "margin" : "spot", finding] as const,
    ),
  )("%s in books kept as %s breaks its check alone, at its row", async (_, accounting, finding) => {
    expect.hasAssertions();
    await expectFaultFound(dir, accounting, finding);
  });
});
