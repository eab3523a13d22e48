import { describe, expect, test } from "vitest";
import { brokenBy, checksOf, type Edit, openAttackedBooks } from "../fixtures/analytics/attacked-books.ts";
import { add, double } from "../fixtures/archive/edited-world.ts";

openAttackedBooks();

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
      "a summary with an order too many",
      (_, summary) => {
        summary.orders = String(Number(summary.orders) + 1);
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
  ])("%s", async (_, edit, numbers) => {
    const found = await brokenBy(edit, numbers);
    expect(found).toEqual(expect.arrayContaining(numbers.slice(0, 1)));
    // nothing that has to do with the edit cries but these
    for (const number of found) expect(numbers).toContain(number);
  });
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

describe("what cannot be told is not said to hold:", () => {
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
