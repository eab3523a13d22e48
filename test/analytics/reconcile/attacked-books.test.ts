// @module-tag slow
import { describe, expect, test } from "vitest";
import { exactOf } from "../../../src/analytics/instruments/instrument.ts";
import {
  breaking,
  brokenBy,
  checksOf,
  type Edit,
  openAttackedBooks,
  seqOf,
} from "../../fixtures/analytics/attacked-books.ts";
import { add, double, type EditedRow, type EditedTables } from "../../fixtures/archive/edited-world.ts";

openAttackedBooks();

// test/all/attacked-books.test.ts has more of each kind
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
      "a withdrawal told as a deposit of less than nothing, where the figures take it off all the same",
      ({ events }) => {
        const event = events.find(({ kind }) => kind === "account.withdrawal")!;
        event.kind = "account.adjustment";
      },
      [4, 2, 3, 7],
    ],
    [
      "a summary whose fees are off by one in the last decimal",
      (_, summary) => {
        add(summary, "fees", 1n);
      },
      [8],
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
    const found = await brokenBy(edit, numbers);
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
    first: [{ what: "filled_quantity matches no sum of the fills", amount: "-0.000000001" }],
  });
  expect(orders!.first[0]!.rows.at(-1)).toEqual({ table: "orders", seq });
  expect(orders!.first[0]!.rows).toContainEqual({ table: "fills", seq });
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
        reason: expect.stringContaining("in a currency other than USD"),
      });
    // positions need no money
    expect(checks[4]).toMatchObject({ verdict: "HOLDS" });
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
});
