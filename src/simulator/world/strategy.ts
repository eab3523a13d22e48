import { RunvaultError } from "../../model/error.ts";
import { canonicalDouble } from "../../row/line.ts";
import type { Bar } from "../bars/bars.ts";
import type { Side } from "../books/position.ts";
import { movingAverage } from "./moving-average.ts";
import { accountScope, type Order, type OrderDesk } from "./order-desk.ts";
import type { Random } from "./random.ts";
import type { RowSink, RunPlan } from "./run-plan.ts";

const fastBars = 4;
const slowBars = 12;
/** The number of bars that an order rests before it is cancelled or expires. */
const patienceBars = 3;
const mostParts = 16;
/** How many times a run's orders may turn over the initial cash, so that fees leave most of it. */
const turnoverShare = 200n;
const largestOrder = 10_000n;

/** The time after a bar's close in which orders execute if the number of fills is fixed. */
const quotaMicros = 40_000_000;

/** A moving-average crossover strategy that trades one instrument with market, limit and stop-limit orders. */
export interface Strategy {
  /** Executes resting orders against a bar that just closed. */
  execute(bar: Bar): void;
  /** Takes the bar's close into the factors and, unless it is the last bar, decides on orders. */
  decide(bar: Bar, index: number): void;
  /** Cancels resting orders, after the last bar of a run that ends normally. */
  stop(micros: number): void;
}

export interface StrategyOptions {
  readonly plan: RunPlan;
  readonly symbol: string;
  /** The number of the instrument's bars in the run. */
  readonly barCount: number;
  /** A typical price of the instrument, in ticks. */
  readonly typicalTicks: number;
  /** The exact number of fills; undefined lets the strategy decide. */
  readonly fills: number | undefined;
  /** How many instruments share the cash. */
  readonly sharing: number;
  /** The value of one lot at a price of one tick, in nanos. */
  readonly nanosPerTickLot: bigint;
  readonly desk: OrderDesk;
  readonly random: Random;
  readonly emit: RowSink;
}

/** A run's strategy for one instrument, starting without a position. */
export function crossoverStrategy(options: StrategyOptions): Strategy {
  const { plan, symbol, barCount, fills: quota, nanosPerTickLot, desk, random, emit } = options;
  const { price } = desk;
  const tickScale = Number(10n ** BigInt(plan.bars.tickDecimals));

  const expectedOrders = BigInt(Math.max(1, Math.ceil(quota === undefined ? barCount / 2 : quota / 8)));
  const budget = (plan.initialCash * turnoverShare) / (expectedOrders * BigInt(options.sharing));
  const orderMoney = budget < largestOrder ? budget : largestOrder;
  const lotMoney = BigInt(options.typicalTicks) * nanosPerTickLot;
  const orderLots = Math.max(1, Number((orderMoney * 1_000_000_000n) / lotMoney));
  const mostLots = 5 * Math.max(orderLots, quota === undefined ? 1 : mostParts);

  const fast = movingAverage(fastBars);
  const slow = movingAverage(slowBars);
  const factorHead = `"resource_key":${JSON.stringify(`factors.${plan.portfolio}.${symbol}`)},"account":"","portfolio":${JSON.stringify(plan.portfolio)},"venue":${JSON.stringify(plan.venue)},"symbol":${JSON.stringify(symbol)},`;
  const rejectHead = `"resource_key":"events.account",${accountScope(plan, plan.venue, symbol)}`;

  let resting: Order | undefined;
  let signal = Number.NaN;
  let cancelled = false;

  /** Splits lots into `parts` parts of at least one lot. */
  const split = (lots: number, parts: number): number[] => {
    const sizes: number[] = [];
    let left = lots;
    for (let open = parts; open > 1; open -= 1) {
      const most = Math.min(left - (open - 1), Math.max(1, Math.floor((2 * left) / open)));
      const size = 1 + random.below(most);
      sizes.push(size);
      left -= size;
    }
    sizes.push(left);
    return sizes;
  };

  const sideNow = (): Side => {
    // a position at its limit can only be reduced
    if (desk.lots >= mostLots) return "SELL";
    if (desk.lots <= -mostLots) return "BUY";
    return signal >= 0 ? "BUY" : "SELL";
  };

  const touchPrice = (side: Side, close: number, depth: number): number =>
    side === "BUY" ? close + 1 + depth : Math.max(1, close - 1 - depth);

  const rejectedOrder = (bar: Bar, side: Side, micros: number): void => {
    const stop = side === "BUY" ? Math.max(1, bar.close - 2) : bar.close + 2;
    const order = desk.submit(
      {
        side,
        type: "STOP_LIMIT",
        timeInForce: "GTC",
        lots: orderLots,
        limit: bar.close,
        stop,
        arrival: bar.close,
      },
      micros,
      random.below(1000),
    );
    const relation = side === "BUY" ? "≤" : "≥";
    const reason = `stop "${price(stop)}" ${relation} last "${price(bar.close)}": would trigger at once`;
    const at = micros + 10_000 + random.below(30_000);
    desk.step(order, at, 0, "REJECTED", "REJECTED", reason);
    const payload = JSON.stringify({
      client_order_id: order.clientId,
      stop: price(stop),
      reason,
      detail: "refusé\tпо цене\n",
    });
    emit(
      "events",
      at,
      1,
      `${rejectHead}"kind":"account.order_rejected","severity":"WARNING","message":${JSON.stringify(`order ${order.clientId} rejected: ${reason}`)},"amount":"","currency":"","payload":${JSON.stringify(payload)}}`,
    );
  };

  const marketOrder = (bar: Bar, side: Side, lots: number, micros: number): void => {
    const order = desk.submit(
      { side, type: "MARKET", timeInForce: "IOC", lots, limit: 0, stop: 0, arrival: bar.close },
      micros,
      random.below(1000),
    );
    let at = micros + 10_000 + random.below(50_000);
    desk.accept(order, at);
    // sometimes the book is too thin, and the rest of the order is cancelled
    const reached = lots > 1 && random.below(8) === 0 ? 1 + random.below(lots - 1) : lots;
    const parts = split(reached, Math.min(reached, 1 + random.below(5)));
    at += 5_000 + random.below(20_000);
    let nanos = random.below(1000);
    for (const [depth, size] of parts.entries()) {
      // often an order takes several levels of the book at once
      if (depth > 0 && random.below(2) === 0) {
        at += 1 + random.below(2_000);
        nanos = random.below(1000);
      }
      desk.fill(order, touchPrice(side, bar.close, depth), size, at, nanos, "TAKER");
    }
    if (reached < lots) desk.step(order, at + 500, nanos, "CANCELED", "CANCELED", "no more liquidity");
  };

  const limitOrder = (bar: Bar, side: Side, lots: number, micros: number, away: number): void => {
    const limit = side === "BUY" ? Math.max(1, bar.close - away) : bar.close + away;
    const order = desk.submit(
      {
        side,
        type: "LIMIT",
        timeInForce: random.below(4) === 0 ? "DAY" : "GTC",
        lots,
        limit,
        stop: 0,
        arrival: bar.close,
      },
      micros,
      random.below(1000),
    );
    desk.accept(order, micros + 10_000 + random.below(50_000));
    resting = order;
  };

  /** Makes the fills that bring the run to its quota after this bar, in orders of up to `mostParts` fills. */
  const fillQuota = (bar: Bar, index: number, micros: number, wanted: number): void => {
    let need = Math.floor((wanted * (index + 1)) / (barCount - 1)) - desk.trades;
    if (need <= 0) return;
    const pace = Math.max(1, Math.floor(quotaMicros / (2 * need)));
    let at = micros;
    while (need > 0) {
      const parts = Math.min(need, 1 + random.below(mostParts));
      const side = sideNow();
      const maker = random.below(2) === 0;
      const order = desk.submit(
        {
          side,
          type: maker ? "LIMIT" : "MARKET",
          timeInForce: maker ? "GTC" : "IOC",
          lots: Math.max(parts, orderLots),
          limit: maker ? bar.close : 0,
          stop: 0,
          arrival: bar.close,
        },
        at,
        random.below(1000),
      );
      desk.accept(order, at);
      let nanos = order.nanos;
      for (const [depth, size] of split(order.lots, parts).entries()) {
        if (depth === 0 || random.below(4) > 0) {
          at += pace;
          nanos = random.below(1000);
        }
        const ticks = maker ? bar.close : touchPrice(side, bar.close, depth);
        desk.fill(order, ticks, size, at, nanos, maker ? "MAKER" : "TAKER");
      }
      need -= parts;
    }
  };

  return {
    execute(bar) {
      const order = resting;
      if (order === undefined || quota !== undefined) return;
      const touched = order.side === "BUY" ? bar.low <= order.limit : bar.high >= order.limit;
      if (!touched) return;
      const open = order.lots - order.filled;
      const taken = open > 1 && random.below(3) === 0 ? 1 + random.below(open - 1) : open;
      let at = bar.closeMicros - 45_000_000 + random.below(30_000_000);
      let nanos = random.below(1000);
      for (const size of split(taken, Math.min(taken, 1 + random.below(4)))) {
        desk.fill(order, order.limit, size, at, nanos, "MAKER");
        if (random.below(2) === 0) {
          at += 1 + random.below(2_000_000);
          nanos = random.below(1000);
        }
      }
      if (order.filled === order.lots) resting = undefined;
    },
    decide(bar, index) {
      const fastMean = fast(bar.close);
      const slowMean = slow(bar.close);
      const before = signal;
      signal = fastMean / slowMean - 1;
      for (const [name, value] of [
        ["fast_ma", fastMean / tickScale],
        ["slow_ma", slowMean / tickScale],
        ["signal", signal],
      ] as const) {
        emit(
          "factors",
          bar.closeMicros,
          bar.closeNanos,
          `${factorHead}"factor":"${name}","value":${canonicalDouble(value)}}`,
        );
      }
      if (index >= barCount - 1) return;
      const micros = bar.closeMicros + 1_000 + random.below(9_000);
      if (resting !== undefined) {
        resting.age += 1;
        if (resting.age >= patienceBars) {
          desk.cancel(resting, micros);
          resting = undefined;
          cancelled = true;
        }
      } else if (!Number.isNaN(signal)) {
        const crossed = Number.isNaN(before) || signal >= 0 !== before >= 0;
        const side = sideNow();
        const kind = random.below(16);
        if (kind === 0) rejectedOrder(bar, side, micros);
        else if (quota !== undefined) {
          // with a quota, resting orders are far from the market and are never filled
          if (kind < 3) limitOrder(bar, side, orderLots, micros, Math.floor(bar.close / 2));
        } else if (crossed || cancelled || random.below(3) === 0) {
          const lots = Math.max(1, Math.floor(orderLots / 2) + random.below(orderLots));
          if (kind < 9) marketOrder(bar, side, lots, micros);
          else limitOrder(bar, side, lots, micros, random.below(1 + Math.floor(bar.close / 1000)));
          cancelled = false;
        }
      }
      if (quota !== undefined) fillQuota(bar, index, micros + 200_000, quota);
    },
    stop(micros) {
      if (quota !== undefined && desk.trades !== quota) {
        throw new RunvaultError(
          "internal",
          `the run has ${desk.trades} fills of ${symbol} instead of ${quota}`,
        );
      }
      if (resting !== undefined) {
        desk.step(resting, micros, 0, "CANCEL_REQUESTED", "PENDING_CANCEL");
        desk.step(resting, micros + 20_000, 0, "CANCELED", "CANCELED", "the run stops");
      }
      resting = undefined;
    },
  };
}
