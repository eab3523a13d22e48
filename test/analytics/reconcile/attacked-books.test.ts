import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ReconcileOptions } from "../../../src/analytics/reconcile/reconcile.ts";
import type { Check } from "../../../src/analytics/reconcile/reconcile-report.ts";
import type { RunRef } from "../../../src/model/source.ts";
import { openSimulator, type Simulator } from "../../../src/simulator/simulator.ts";
import { add, double, type EditedTables, editedWorld } from "../../fixtures/archive/edited-world.ts";
import { currenciesOf, reconciled } from "../../fixtures/archive/reconciled-world.ts";

type Edit = (tables: EditedTables, summary: Record<string, string>) => void;

let dir: string;
let world: Simulator;
let run: RunRef;
const instruments = currenciesOf({ "BTC-PERP": "USD", "BTC-PERP-2": "USD" });
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "runvault-attacked-"));
  world = await openSimulator({ runs: 1, failed: 0, rows: 5_000, symbols: 2, transfers: 4, cacheDir: dir });
  run = (await world.runs("alpha-1"))![0]!;
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
});

async function checksOf(edit: Edit, options: Partial<ReconcileOptions> = {}): Promise<readonly Check[]> {
  const source = await editedWorld(world, run, edit);
  return (await reconciled(dir, source, run, { instruments, ...options })).checks;
}

function breaking(checks: readonly Check[]): number[] {
  return checks.filter(({ verdict }) => verdict === "BREAKS").map(({ number }) => number);
}

test("rows that nobody touched balance", async () => {
  const checks = await checksOf(() => {});
  expect(checks.map(({ verdict, reason }) => [verdict, reason])).toEqual(Array(8).fill(["HOLDS", null]));
});

describe("books that are wrong break a check that can tell:", () => {
  test.each<[string, Edit, number[]]>([
    [
      "a fill booked in another portfolio",
      ({ fills }) => {
        fills[30]!.portfolio = "other";
      },
      [2, 3, 4, 6],
    ],
    [
      "a fill of another order",
      ({ fills }) => {
        const other = fills.find(
          (fill) =>
            fill.client_order_id !== fills[30]!.client_order_id &&
            fill.side === fills[30]!.side &&
            fill.symbol === fills[30]!.symbol &&
            fill.quantity !== fills[30]!.quantity,
        )!;
        fills[30]!.client_order_id = other.client_order_id!;
      },
      [6],
    ],
    [
      "an order that is filled twice",
      ({ orders }) => double(orders, orders.find(({ kind }) => kind === "FILLED")!),
      [6],
    ],
    [
      "an order that is submitted twice",
      ({ orders }) => double(orders, orders.find(({ kind }) => kind === "SUBMITTED")!),
      [6, 8],
    ],
    [
      "a withdrawal that is told as if it had come in",
      ({ events }) => {
        const event = events.find(({ kind }) => kind === "account.withdrawal")!;
        event.amount = event.amount!.replace("-", "");
      },
      [2, 3, 4, 7],
    ],
    [
      "a withdrawal told as a deposit of less than nothing, where the figures take it off all the same",
      ({ events }) => {
        const event = events.find(({ kind }) => kind === "account.withdrawal")!;
        event.kind = "account.adjustment";
      },
      [4, 2, 3, 7],
    ],
    [
      "a summary with an order too many",
      (_, summary) => {
        summary.orders = String(Number(summary.orders) + 1);
      },
      [8],
    ],
    [
      "a summary whose fees are off by one in the last decimal",
      (_, summary) => {
        add(summary, "fees", 1n);
      },
      [8],
    ],
    [
      "a point marked to another symbol",
      ({ equity, bars }) => {
        const other = bars.find(({ symbol }) => symbol === "BTC-PERP-2")!;
        add(equity[90]!, "position_value", BigInt(Math.round(Number(other.close))) * 1_000_000_000n);
        add(equity[90]!, "equity", BigInt(Math.round(Number(other.close))) * 1_000_000_000n);
      },
      [2, 7],
    ],
    [
      "two points that have changed places",
      ({ equity }) => {
        const [a, b] = [equity[50]!, equity[51]!];
        for (const column of ["cash", "position_value", "equity", "realized", "unrealized"])
          [a[column], b[column]] = [b[column]!, a[column]!];
      },
      [2, 3, 4, 7],
    ],
    [
      "realized profit that is off from the first point to the last",
      ({ equity }) => {
        for (const point of equity) add(point, "realized", 1n);
      },
      [4],
    ],
    [
      "a fill at twice the quantity for half the price",
      ({ fills }) => {
        const fill = fills[30]!;
        add(fill, "quantity", BigInt(Math.round(Number(fill.quantity) * 1e9)));
      },
      [2, 3, 4, 6],
    ],
    [
      "a drawdown of the other sign",
      ({ metrics }) => {
        const row = metrics.find(({ name }) => name === "max_drawdown")!;
        row.value = -Number(row.value) as unknown as string;
      },
      [7],
    ],
    [
      "a bar with another close",
      ({ bars }) => {
        for (const bar of bars.filter(({ symbol }) => symbol === "BTC-PERP").slice(100, 101))
          add(bar, "close", 1_000_000_000n);
      },
      [2],
    ],
  ])("%s", async (_, edit, numbers) => {
    const found = breaking(await checksOf(edit));
    expect(found).toEqual(expect.arrayContaining(numbers.slice(0, 1)));
    // nothing that has to do with the edit cries but these
    for (const number of found) expect(numbers).toContain(number);
  });
});

describe("what cannot be told is not said to hold:", () => {
  test("a fee in another currency", async () => {
    const checks = await checksOf(({ fills }) => {
      fills[30]!.fee_currency = "BNB";
    });
    for (const number of [2, 3, 4])
      expect(checks[number - 1]).toMatchObject({
        verdict: "NOT CHECKED",
        reason: expect.stringContaining("another currency"),
      });
    // positions need no money
    expect(checks[4]).toMatchObject({ verdict: "HOLDS" });
  });

  test("a position that is not that of the fills is found all the same", async () => {
    const checks = await checksOf(({ fills }) => {
      fills[30]!.fee_currency = "BNB";
      add(fills[40]!, "quantity", 1_000_000_000n);
    });
    expect(checks[4]).toMatchObject({ verdict: "BREAKS" });
  });

  test("an event of a currency that no equity has", async () => {
    const checks = await checksOf(({ events }) => {
      events.find(({ kind }) => kind === "account.deposit")!.currency = "XYZ";
    });
    expect(checks[1]!.verdict).not.toBe("HOLDS");
    expect(checks[1]!.reason).toContain("1 events move money");
  });

  test("a figure that nobody knows, by its name and row", async () => {
    const checks = await checksOf(({ metrics }) => {
      metrics[3]!.name = "sharp_ratio";
    });
    expect(checks[6]).toMatchObject({
      verdict: "NOT CHECKED",
      reason: `1 rows of "sharp_ratio" are not recomputed, the first with seq ${await seqOf(3)}`,
    });
  });

  test("a window that nobody knows", async () => {
    const checks = await checksOf(({ metrics }) => {
      metrics[3]!.window = "fortnight";
    });
    expect(checks[6]).toMatchObject({
      verdict: "NOT CHECKED",
      reason: expect.stringContaining('"fortnight"'),
    });
  });
});

async function seqOf(place: number): Promise<string> {
  let seq = "";
  await editedWorld(world, run, ({ metrics }) => {
    seq = metrics[place]!.seq!;
  });
  return seq;
}
