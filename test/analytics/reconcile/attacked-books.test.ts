import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exactOf } from "../../../src/analytics/instruments/instrument.ts";
import type { ReconcileOptions } from "../../../src/analytics/reconcile/reconcile.ts";
import type { Check } from "../../../src/analytics/reconcile/reconcile-report.ts";
import type { RunRef } from "../../../src/model/source.ts";
import { openSimulator, type Simulator } from "../../../src/simulator/simulator.ts";
import {
  add,
  double,
  type EditedRow,
  type EditedTables,
  editedWorld,
} from "../../fixtures/archive/edited-world.ts";
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

test("rows with the greatest seqs there are, which are told by them", async () => {
  const least = 2n ** 64n - 1_000_000n;
  const checks = await checksOf(({ orders }) => {
    for (const row of orders) row.seq = String(least + BigInt(row.seq!));
    add(orders.find(({ kind }) => kind === "FILLED")!, "filled_quantity", 1_000_000n);
  });
  expect(breaking(checks)).toEqual([6]);
  const told = checks[5]!.first.flatMap(({ rows }) => rows).filter(({ table }) => table === "orders");
  expect(told.length).toBeGreaterThan(0);
  for (const { seq } of told) expect(BigInt(seq)).toBeGreaterThanOrEqual(least);
});

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
    const checks = await checksOf((tables, summary) => {
      edit(tables, summary);
      // recomputing figures takes longer than all other checks
      if (!numbers.includes(7)) tables.metrics = [];
    });
    const found = breaking(checks);
    expect(found).toEqual(expect.arrayContaining(numbers.slice(0, 1)));
    // nothing that has to do with the edit cries but these
    for (const number of found) expect(numbers).toContain(number);
  });
});

/** An order that was filled in part first, and its step of then. */
function partStep({ orders, fills }: EditedTables): EditedRow {
  return orders.find(({ kind, client_order_id }) => {
    const own = fills.filter((fill) => fill.client_order_id === client_order_id);
    return kind === "PARTIALLY_FILLED" && new Set(own.map(({ ts_event }) => ts_event)).size === own.length;
  })!;
}

test("a quantity on the way to an order's end that its fills never come to is told, with the step last", async () => {
  let seq = "";
  const [, , , , , orders] = await checksOf((tables) => {
    const step = partStep(tables);
    seq = step.seq!;
    add(step, "filled_quantity", -1n);
    // a fill of the same seq is another row
    const fill = tables.fills.find(({ client_order_id }) => client_order_id === step.client_order_id)!;
    tables.fills.find((other) => other.seq === seq)!.seq = fill.seq!;
    fill.seq = seq;
  });
  expect(orders).toMatchObject({
    verdict: "BREAKS",
    breaks: 1,
    first: [{ what: "filled_quantity is none that the fills come to", amount: "-0.000000001" }],
  });
  expect(orders!.first[0]!.rows.at(-1)).toEqual({ table: "orders", seq });
  expect(orders!.first[0]!.rows).toContainEqual({ table: "fills", seq });
});

test("an order of very many fills that all came early is told of in seconds", async () => {
  const began = process.cpuUsage().user;
  const [, , , , , orders] = await checksOf((tables) => {
    const fill = tables.fills.at(-1)!;
    for (let more = 0; more < 60_000; more++)
      tables.fills.push({ ...fill, seq: String(1_000_000 + more), ts_init: "1", trade_id: `more-${more}` });
  });
  expect(orders!.breaks).toBeGreaterThan(60_000);
  expect(process.cpuUsage().user - began).toBeLessThan(20_000_000);
});

describe("what is off by more than the tolerance breaks, though its sum is within it:", () => {
  test.each<[string, Readonly<Record<string, bigint>>, number]>([
    ["equity", { equity: 12n, cash: 5n }, 2],
    ["position_value, with cash off the other way", { position_value: 12n, cash: -8n, equity: 4n }, 3],
    ["cash, with position_value off the other way", { position_value: -8n, cash: 12n, equity: 4n }, 3],
  ])("%s", async (_, amounts, number) => {
    const checks = await checksOf(
      ({ equity }) => {
        for (const [column, amount] of Object.entries(amounts)) add(equity[90]!, column, amount);
      },
      { tolerance: exactOf("0.00000001") },
    );
    expect(breaking(checks)).toEqual([number]);
    expect(checks[number - 1]).toMatchObject({ breaks: 1, largest: "0.000000012" });
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
    expect(checks[1]!.reason).toContain("1 event moves money");
  });

  test("a figure that nobody knows, by its name and row", async () => {
    const checks = await checksOf(({ metrics }) => {
      metrics[3]!.name = "sharp_ratio";
    });
    expect(checks[6]).toMatchObject({
      verdict: "NOT CHECKED",
      reason: `1 row of "sharp_ratio" is not recomputed, the first with seq ${await seqOf(3)}`,
    });
  });

  test("a window that is longer than all time, which reaches back to the run's first point", async () => {
    const checks = await checksOf(({ metrics }) => {
      metrics[3]!.window = "999999999999d";
    });
    expect(checks[6]!.rows).toBeGreaterThan(0);
  });

  test("a figure with the greatest seq there is", async () => {
    const checks = await checksOf(({ metrics }) => {
      metrics.at(-1)!.seq = "18446744073709551615";
      metrics.at(-1)!.name = "sharp_ratio";
    });
    expect(checks[6]!.reason).toContain("the first with seq 18446744073709551615");
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
