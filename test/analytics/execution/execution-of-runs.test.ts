// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TableName } from "../../../src/model/profile/table.ts";
import { openSimulator } from "../../../src/simulator/simulator.ts";
import { macroRows, macroWorld } from "../../fixtures/analytics/macro-rows.ts";
import { type TradeWorld, tradedRun } from "../../fixtures/trades/trade-world.ts";

/** The same figures by other code: plain TypeScript over the rows as the gateway sends them. */

type Line = Readonly<Record<string, string>>;

let folder: string;
let world: TradeWorld;
const lines = new Map<TableName, readonly Line[]>();
const maxAge = 200;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-execution-"));
  await using source = await openSimulator({
    cacheDir: join(folder, "worlds"),
    ...{ runs: 1, rows: 9_000, symbols: 3, failed: 0, seed: "execution", clock: () => 2n ** 62n },
  });
  world = await macroWorld();
  for (const name of ["fills", "orders", "bars", "order_book", "equity"] as const) {
    await world.load(source, tradedRun, name);
    const pieces: Uint8Array[] = [];
    for await (const piece of source.rows({ ...tradedRun, table: name })) pieces.push(piece);
    const parsed = Buffer.concat(pieces)
      .toString()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Line);
    lines.set(name, parsed);
  }
}, 60_000);
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const ns = (line: Line | undefined) => BigInt(line!.ts_event!);
const secondsOf = (span: bigint) => Number(span) / 1e9;

interface Life {
  readonly rows: readonly Line[];
  readonly last: Line;
  readonly submitted: bigint;
  readonly fills: readonly Line[];
}

/** Orders by their id, each with its rows in key order, which is the order of the table, and its fills. */
function lives(): ReadonlyMap<string, Life> {
  const fills = Map.groupBy(lines.get("fills")!, ({ client_order_id }) => client_order_id!);
  const orders = Map.groupBy(lines.get("orders")!, ({ client_order_id }) => client_order_id!);
  return new Map(
    [...orders].map(([id, rows]) => [
      id,
      {
        ...{ rows, last: rows.at(-1)!, fills: fills.get(id) ?? [] },
        submitted: ns(rows.find(({ kind }) => kind === "SUBMITTED")),
      },
    ]),
  );
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const [low, high] = [sorted[Math.floor(place)]!, sorted[Math.ceil(place)]!];
  return low + (high - low) * (place - Math.floor(place));
}

const mean = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0) / values.length;
const near = (got: unknown, expected: number) =>
  expect(Math.abs(Number(got) - expected)).toBeLessThanOrEqual(1e-9 * Math.max(1e-9, Math.abs(expected)));

/** The figures of `execution` that are by these columns and no others. */
async function figuresBy(
  by: Readonly<Record<string, string>>,
): Promise<Map<unknown, Record<string, unknown>>> {
  const rows = await macroRows(world, "execution", `max_age := '${maxAge} seconds'`);
  const own = rows.filter((row) =>
    ["venue", "order_type", "liquidity", "symbol"].every((name) => row[name] === (by[name] ?? null)),
  );
  return new Map(own.map((row) => [row.metric, row]));
}

describe("the funnel", () => {
  test("adds up to the orders that were submitted, by the state of their latest row", async () => {
    const rows = await macroRows(world, "order_funnel");
    const all = [...lives().values()];
    expect(all.length).toBeGreaterThan(200);
    expect(rows.reduce((sum, { orders }) => sum + Number(orders), 0)).toBe(all.length);
    const expected = Map.groupBy(all, ({ last }) =>
      [
        last.symbol,
        last.venue,
        last.type,
        last.status === "PARTIALLY_FILLED" ? "accepted" : last.status!.toLowerCase(),
      ].join(),
    );
    const partly = ({ last }: Life) =>
      Number(last.filled_quantity) > 0 && Number(last.filled_quantity) < Number(last.quantity);
    expect(
      Object.fromEntries(
        rows.map((row) => [
          [row.symbol, row.venue, row.order_type, row.state].join(),
          [row.orders, row.partly_filled],
        ]),
      ),
    ).toEqual(
      Object.fromEntries([...expected].map(([key, own]) => [key, [own.length, own.filter(partly).length]])),
    );
    expect(new Set(rows.map(({ state }) => state))).toEqual(
      new Set(["filled", "canceled", "expired", "rejected"]),
    );
  });
});

describe("fill ratios", () => {
  test("are by orders, by quantity of one symbol, and by the mean of orders", async () => {
    const all = [...lives().values()];
    const share = ({ last }: Life) => Number(last.filled_quantity) / Number(last.quantity);
    const together = await figuresBy({});
    near(
      together.get("fill_ratio_orders")!.value,
      all.filter(({ last }) => last.status === "FILLED").length / all.length,
    );
    near(together.get("fill_ratio_mean")!.value, mean(all.map(share)));
    expect(together.get("fill_ratio_quantity")).toMatchObject({
      value: null,
      reason: "quantities of several symbols are not added",
    });
    for (const symbol of new Set(all.map(({ last }) => last.symbol!))) {
      const own = all.filter(({ last }) => last.symbol === symbol);
      const sum = (name: string) => own.reduce((total, { last }) => total + Number(last[name]), 0);
      const figures = await figuresBy({ symbol });
      near(figures.get("fill_ratio_quantity")!.value, sum("filled_quantity") / sum("quantity"));
    }
  });
});

describe("latency", () => {
  test("is from submission to acceptance of all, and to the first fill of market and marketable orders", async () => {
    const all = [...lives().values()];
    for (const type of ["MARKET", "LIMIT"]) {
      const own = all.filter(({ last }) => last.type === type);
      const accepts = own.flatMap(({ rows, submitted }) => {
        const accepted = rows.find(({ kind }) => kind === "ACCEPTED");
        return accepted === undefined ? [] : [secondsOf(ns(accepted) - submitted)];
      });
      const figures = await figuresBy({ order_type: type });
      expect(figures.get("accept_latency_mean")!.n).toBe(accepts.length);
      near(figures.get("accept_latency_mean")!.value, mean(accepts));
      near(figures.get("accept_latency_p95")!.value, quantile(accepts, 0.95));
      near(figures.get("accept_latency_max")!.value, Math.max(...accepts));
      const filled = own.filter(
        ({ fills }) => fills.length > 0 && (type === "MARKET" || fills[0]!.liquidity === "TAKER"),
      );
      const times = filled.map(({ fills, submitted }) => secondsOf(ns(fills[0]) - submitted));
      if (type === "LIMIT") {
        expect(figures.get("fill_latency_p50")).toMatchObject({ value: null, n: 0 });
        continue;
      }
      expect(figures.get("fill_latency_p50")!.n).toBe(times.length);
      near(figures.get("fill_latency_p50")!.value, quantile(times, 0.5));
      near(figures.get("fill_latency_p99")!.value, quantile(times, 0.99));
    }
  });
});

describe("slippage", () => {
  test("is weighted by notional, by order type and liquidity, against all three references", async () => {
    const bars = Map.groupBy(lines.get("bars")!, ({ symbol }) => symbol!);
    const books = Map.groupBy(lines.get("order_book")!, ({ symbol }) => symbol!);
    const touches = new Map(
      [...books].map(([symbol, rows]) => {
        const snapshots = Map.groupBy(
          rows.filter(({ level }) => String(level) === "0"),
          ({ snapshot_id }) => snapshot_id!,
        );
        return [
          symbol,
          [...snapshots.values()].map((own) => ({
            ts: ns(own[0]),
            mid: mean(own.map(({ price }) => Number(price))),
          })),
        ];
      }),
    );
    const groups = new Map<string, { sums: Record<string, [number, number, number]>; ages: number[] }>();
    for (const { last, submitted, fills } of lives().values()) {
      const bar = bars.get(last.symbol!)!.findLast((one) => ns(one) < submitted);
      const book = touches.get(last.symbol!)!.findLast(({ ts }) => ts <= submitted);
      const age = book === undefined ? Number.POSITIVE_INFINITY : secondsOf(submitted - book.ts);
      const references = {
        slippage_arrival: Number(last.arrival_price),
        slippage_bar: bar === undefined ? undefined : Number(bar.close),
        slippage_mid: age <= maxAge ? book!.mid : undefined,
      };
      for (const fill of fills) {
        const key = `${last.type} ${fill.liquidity}`;
        const group = groups.get(key) ?? { sums: {}, ages: [] };
        groups.set(key, group);
        if (age <= maxAge) group.ages.push(age);
        for (const [name, reference] of Object.entries(references)) {
          if (reference === undefined) continue;
          const price = Number(fill.price);
          const notional = price * Number(fill.quantity);
          const cost = (fill.side === "BUY" ? 1 : -1) * ((price - reference) / reference) * 10_000;
          const [n, costs, weights] = group.sums[name] ?? [0, 0, 0];
          group.sums[name] = [n + 1, costs + cost * notional, weights + notional];
        }
      }
    }
    expect([...groups.keys()].sort()).toEqual(["LIMIT MAKER", "MARKET TAKER"]);
    for (const [key, { sums, ages }] of groups) {
      const [order_type, liquidity] = key.split(" ");
      const figures = await figuresBy({ order_type: order_type!, liquidity: liquidity! });
      for (const [name, [n, costs, weights]] of Object.entries(sums)) {
        expect(figures.get(name)!.n).toBe(n);
        expect(Math.abs(Number(figures.get(name)!.value) - costs / weights)).toBeLessThan(1e-8);
      }
      // books are five minutes apart: some are too old, and some are not
      expect(sums.slippage_mid![0]).toBeGreaterThan(0);
      expect(sums.slippage_mid![0]).toBeLessThan(sums.slippage_arrival![0]);
      near(figures.get("book_age_mean")!.value, mean(ages));
      near(figures.get("book_age_p95")!.value, quantile(ages, 0.95));
      near(figures.get("book_age_max")!.value, Math.max(...ages));
    }
  });
});

describe("shares and fees", () => {
  test("are of notional, and exact by venue and currency", async () => {
    const fills = lines.get("fills")!;
    const notional = (own: readonly Line[]) =>
      own.reduce((sum, { price, quantity }) => sum + Number(price) * Number(quantity), 0);
    const figures = await figuresBy({});
    near(
      figures.get("maker_share")!.value,
      notional(fills.filter(({ liquidity }) => liquidity === "MAKER")) / notional(fills),
    );
    expect(Number(figures.get("maker_share")!.value) + Number(figures.get("taker_share")!.value)).toBeCloseTo(
      1,
      12,
    );
    const nanos = (text: string) => {
      const [whole = "0", fraction = ""] = text.replace("-", "").split(".");
      return BigInt(whole + fraction.padEnd(9, "0")) * (text.startsWith("-") ? -1n : 1n);
    };
    const rows = await world.connection.runAndReadAll(`
      SELECT venue, currency, CAST(amount AS VARCHAR) FROM execution('alpha-1', '2022-01-01-001')
      WHERE metric = 'fees' ORDER BY venue`);
    const expected = [...Map.groupBy(fills, ({ venue }) => venue!)]
      .map(([venue, own]) => [venue, "USD", own.reduce((sum, { fee }) => sum + nanos(fee!), 0n)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1));
    expect(
      rows.getRows().map(([venue, currency, amount]) => [venue, currency, nanos(String(amount))]),
    ).toEqual(expected);
    expect(expected).toHaveLength(2);
  });
});
