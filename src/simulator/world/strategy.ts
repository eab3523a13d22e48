import { RunvaultError } from "../../model/error.ts";
import { divideHalfEven, formatScaled } from "../../model/fixed-point.ts";
import { canonicalDouble } from "../../row/line.ts";
import type { Bar } from "./bars.ts";
import { movingAverage } from "./moving-average.ts";
import { feeAt, openPosition, type Position, type Side } from "./position.ts";
import type { Random } from "./random.ts";
import type { RowSink, RunPlan } from "./run-plan.ts";

const fastBars = 4;
const slowBars = 12;
/** Bars a resting order waits before it is cancelled or expires. */
const patienceBars = 3;
const mostParts = 16;
const makerFee = feeAt(100n);
const takerFee = feeAt(500n);
/** The share of the initial cash that all orders of a run may turn over, so that fees leave most of it. */
const turnoverShare = 200n;
const largestOrder = 10_000n;

/** Time after a bar's close in which orders of a run with a given number of fills execute. */
const quotaMicros = 40_000_000;

interface Order {
  readonly clientId: string;
  readonly venueId: string;
  readonly venue: string;
  readonly side: Side;
  readonly type: "MARKET" | "LIMIT" | "STOP_LIMIT";
  readonly timeInForce: "GTC" | "IOC" | "DAY";
  readonly lots: number;
  /** In ticks; 0 for none. */
  readonly limit: number;
  readonly stop: number;
  readonly arrival: number;
  filled: number;
  /** Sum of ticks × lots over its fills. */
  turnover: bigint;
  /** The latest step, so that no later one gets the same instant or an earlier one. */
  micros: number;
  nanos: number;
  accepted: boolean;
  age: number;
}

export interface StrategyTotals {
  readonly orders: number;
  readonly fills: number;
}

/** A moving-average crossover that trades one instrument with market, limit and stop-limit orders. */
export interface Strategy {
  readonly position: Position;
  readonly totals: StrategyTotals;
  /** Executes what rests in the book against a bar that just closed. */
  execute(bar: Bar): void;
  /** Takes the bar's close into the factors and, unless it is the last bar, decides on orders. */
  decide(bar: Bar, index: number): void;
  /** Cancels what still rests, after the last bar of a run that ends in order. */
  stop(micros: number): void;
}

/** The strategy of a run, with its cash and without a position. */
export function crossoverStrategy(plan: RunPlan, random: Random, emit: RowSink): Strategy {
  const { lotDecimals, barCount, fills: quota } = plan;
  const tickDecimals = plan.bars.tickDecimals;
  const nanosPerTickLot = 10n ** BigInt(9 - tickDecimals - lotDecimals);
  const position = openPosition(plan.initialCash * 1_000_000_000n, nanosPerTickLot);
  const tickScale = Number(10n ** BigInt(tickDecimals));
  const priceScale = 10n ** BigInt(9 - tickDecimals);

  const expectedOrders = BigInt(Math.max(1, Math.ceil(quota === undefined ? barCount / 2 : quota / 8)));
  const budget = (plan.initialCash * turnoverShare) / expectedOrders;
  const orderMoney = budget < largestOrder ? budget : largestOrder;
  const lotMoney = BigInt(plan.bars.typicalTicks) * nanosPerTickLot;
  const orderLots = Math.max(1, Number((orderMoney * 1_000_000_000n) / lotMoney));
  const mostLots = 5 * Math.max(orderLots, quota === undefined ? 1 : mostParts);

  const fast = movingAverage(fastBars);
  const slow = movingAverage(slowBars);
  const venues = [plan.venue, `${plan.venue}-DARK`];
  const scope = (venue: string): string =>
    `"account":${JSON.stringify(plan.account)},"portfolio":${JSON.stringify(plan.portfolio)},"venue":${JSON.stringify(venue)},"symbol":${JSON.stringify(plan.symbol)},`;
  const keyOf = (table: string, venue: string): string =>
    `"resource_key":${JSON.stringify(`${table}.${venue}.${plan.symbol}`)},${scope(venue)}`;
  const fillHead = new Map(venues.map((venue) => [venue, keyOf("fills", venue)]));
  const orderHead = new Map(venues.map((venue) => [venue, keyOf("orders", venue)]));
  const factorHead = `"resource_key":${JSON.stringify(`factors.${plan.portfolio}.${plan.symbol}`)},"account":"","portfolio":${JSON.stringify(plan.portfolio)},"venue":${JSON.stringify(plan.venue)},"symbol":${JSON.stringify(plan.symbol)},`;
  const rejectHead = `"resource_key":"events.account",${scope(plan.venue)}`;

  let orders = 0;
  let fills = 0;
  let resting: Order | undefined;
  let signal = Number.NaN;
  let cancelled = false;

  const price = (ticks: number): string => (ticks === 0 ? "" : formatScaled(ticks, tickDecimals));
  const quantity = (lots: number): string => formatScaled(lots, lotDecimals);

  /** A step of an order's life, at the instant given or right after its latest step, whichever is later. */
  const step = (
    order: Order,
    micros: number,
    nanos: number,
    kind: string,
    status: string,
    reason = "",
  ): void => {
    if (micros < order.micros || (micros === order.micros && nanos <= order.nanos)) {
      order.nanos = (order.nanos + 1) % 1000;
      if (order.nanos === 0) order.micros += 1;
    } else {
      order.micros = micros;
      order.nanos = nanos;
    }
    const average =
      order.filled === 0
        ? ""
        : formatScaled(divideHalfEven(order.turnover * priceScale, BigInt(order.filled)), 9);
    emit(
      "orders",
      order.micros,
      order.nanos,
      `${orderHead.get(order.venue)}"client_order_id":"${order.clientId}","venue_order_id":"${order.accepted ? order.venueId : ""}","kind":"${kind}","status":"${status}","side":"${order.side}","type":"${order.type}","time_in_force":"${order.timeInForce}","quantity":"${quantity(order.lots)}","price":"${price(order.limit)}","stop_price":"${price(order.stop)}","filled_quantity":"${quantity(order.filled)}","average_price":"${average}","arrival_price":"${price(order.arrival)}","reason":${JSON.stringify(reason)}}`,
    );
  };

  const fill = (
    order: Order,
    ticks: number,
    lots: number,
    micros: number,
    nanos: number,
    liquidity: string,
  ): void => {
    const feeBefore = position.fees;
    position.fill(order.side, ticks, lots, liquidity === "MAKER" ? makerFee : takerFee);
    const fee = formatScaled(position.fees - feeBefore, 9);
    order.filled += lots;
    order.turnover += BigInt(ticks) * BigInt(lots);
    fills += 1;
    emit(
      "fills",
      micros,
      nanos,
      `${fillHead.get(order.venue)}"trade_id":"T${fills}","client_order_id":"${order.clientId}","venue_order_id":"${order.venueId}","side":"${order.side}","price":"${price(ticks)}","quantity":"${quantity(lots)}","fee":"${fee}","fee_currency":${JSON.stringify(plan.currency)},"liquidity":"${liquidity}"}`,
    );
    const done = order.filled === order.lots ? "FILLED" : "PARTIALLY_FILLED";
    step(order, micros, nanos, done, done);
  };

  const submit = (
    wanted: Pick<Order, "side" | "type" | "timeInForce" | "lots" | "limit" | "stop" | "arrival">,
    micros: number,
    nanos: number,
  ): Order => {
    orders += 1;
    const order: Order = {
      clientId: `C-${orders}`,
      venueId: `V${1_000_000 + orders}`,
      venue: venues[random.below(4) === 0 ? 1 : 0]!,
      ...wanted,
      filled: 0,
      turnover: 0n,
      micros: 0,
      nanos: 0,
      accepted: false,
      age: 0,
    };
    step(order, micros, nanos, "SUBMITTED", "SUBMITTED");
    return order;
  };

  const accept = (order: Order, micros: number): void => {
    order.accepted = true;
    step(order, micros, random.below(1000), "ACCEPTED", "ACCEPTED");
  };

  const cancel = (order: Order, micros: number): void => {
    if (order.timeInForce === "DAY") {
      step(order, micros, random.below(1000), "EXPIRED", "EXPIRED", "end of day");
    } else {
      step(order, micros, random.below(1000), "CANCEL_REQUESTED", "PENDING_CANCEL");
      step(
        order,
        micros + 1_000 + random.below(40_000),
        random.below(1000),
        "CANCELED",
        "CANCELED",
        "by the strategy",
      );
    }
  };

  /** Lots in `parts` parts of one lot or more. */
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
    // a position at its bound can only be reduced
    if (position.lots >= mostLots) return "SELL";
    if (position.lots <= -mostLots) return "BUY";
    return signal >= 0 ? "BUY" : "SELL";
  };

  const touchPrice = (side: Side, close: number, depth: number): number =>
    side === "BUY" ? close + 1 + depth : Math.max(1, close - 1 - depth);

  const rejectedOrder = (bar: Bar, side: Side, micros: number): void => {
    const stop = side === "BUY" ? Math.max(1, bar.close - 2) : bar.close + 2;
    const order = submit(
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
    step(order, at, 0, "REJECTED", "REJECTED", reason);
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
    const order = submit(
      { side, type: "MARKET", timeInForce: "IOC", lots, limit: 0, stop: 0, arrival: bar.close },
      micros,
      random.below(1000),
    );
    let at = micros + 10_000 + random.below(50_000);
    accept(order, at);
    // now and then the book is too thin, and the rest of the order is cancelled
    const reached = lots > 1 && random.below(8) === 0 ? 1 + random.below(lots - 1) : lots;
    const parts = split(reached, Math.min(reached, 1 + random.below(5)));
    at += 5_000 + random.below(20_000);
    let nanos = random.below(1000);
    for (const [depth, size] of parts.entries()) {
      // several levels of the book are often taken at one instant
      if (depth > 0 && random.below(2) === 0) {
        at += 1 + random.below(2_000);
        nanos = random.below(1000);
      }
      fill(order, touchPrice(side, bar.close, depth), size, at, nanos, "TAKER");
    }
    if (reached < lots) step(order, at + 500, nanos, "CANCELED", "CANCELED", "no more liquidity");
  };

  const limitOrder = (bar: Bar, side: Side, lots: number, micros: number, away: number): void => {
    const limit = side === "BUY" ? Math.max(1, bar.close - away) : bar.close + away;
    const order = submit(
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
    accept(order, micros + 10_000 + random.below(50_000));
    resting = order;
  };

  /** As many fills as bring the run to its quota after this bar, in orders of up to `mostParts` fills each. */
  const fillQuota = (bar: Bar, index: number, micros: number, wanted: number): void => {
    let need = Math.floor((wanted * (index + 1)) / (barCount - 1)) - fills;
    if (need <= 0) return;
    const pace = Math.max(1, Math.floor(quotaMicros / (2 * need)));
    let at = micros;
    while (need > 0) {
      const parts = Math.min(need, 1 + random.below(mostParts));
      const side = sideNow();
      const maker = random.below(2) === 0;
      const order = submit(
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
      accept(order, at);
      let nanos = order.nanos;
      for (const [depth, size] of split(order.lots, parts).entries()) {
        if (depth === 0 || random.below(4) > 0) {
          at += pace;
          nanos = random.below(1000);
        }
        const ticks = maker ? bar.close : touchPrice(side, bar.close, depth);
        fill(order, ticks, size, at, nanos, maker ? "MAKER" : "TAKER");
      }
      need -= parts;
    }
  };

  return {
    position,
    get totals() {
      return { orders, fills };
    },
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
        fill(order, order.limit, size, at, nanos, "MAKER");
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
          cancel(resting, micros);
          resting = undefined;
          cancelled = true;
        }
      } else if (!Number.isNaN(signal)) {
        const crossed = Number.isNaN(before) || signal >= 0 !== before >= 0;
        const side = sideNow();
        const kind = random.below(16);
        if (kind === 0) rejectedOrder(bar, side, micros);
        else if (quota !== undefined) {
          // with a quota, orders that rest are out of the market's reach and end unfilled
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
      if (quota !== undefined && fills !== quota) {
        throw new RunvaultError("internal", `the run has ${fills} fills instead of ${quota}`);
      }
      if (resting !== undefined) {
        step(resting, micros, 0, "CANCEL_REQUESTED", "PENDING_CANCEL");
        step(resting, micros + 20_000, 0, "CANCELED", "CANCELED", "the run stops");
      }
      resting = undefined;
    },
  };
}
