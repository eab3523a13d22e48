import { divideHalfEven, formatScaled } from "../../model/fixed-point.ts";
import type { BookBreak } from "../books/book-break.ts";
import type { Holding, Ledger } from "../books/ledger.ts";
import { type Nanos, type Side, shareOf } from "../books/position.ts";
import type { Random } from "./random.ts";
import type { InstrumentPlan, RowSink, RunPlan } from "./run-plan.ts";

const makerFee = shareOf(100n);
const takerFee = shareOf(500n);
/** The shift of an average price, in nanos: more than rounding can explain. */
const averageShift = 10n;

export interface Order {
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
  /** True if a fault removes its rows. */
  readonly lost: boolean;
  filled: number;
  /** Sum of ticks × lots over its fills. */
  turnover: bigint;
  /** The time of the latest step: later ones must come after it. */
  micros: number;
  nanos: number;
  accepted: boolean;
  /** The number of bars for which it has rested. */
  age: number;
}

/** Counters shared by the orders of a run's instruments. */
export interface RunTally {
  /** Orders submitted and trades made. They number the ids. */
  submitted: number;
  traded: number;
  /** Orders and fills that have rows. */
  orders: number;
  fills: number;
  /** Fees in the rows of fills, by currency. */
  readonly fees: Map<string, Nanos>;
}

/** Handles the orders of one instrument: submits, fills and books them, with a row for every step. */
export interface OrderDesk {
  /** The position from its orders' fills. Signed, in lots. */
  readonly lots: number;
  readonly trades: number;
  submit(
    wanted: Pick<Order, "side" | "type" | "timeInForce" | "lots" | "limit" | "stop" | "arrival">,
    micros: number,
    nanos: number,
  ): Order;
  accept(order: Order, micros: number): void;
  /** Cancels an order for the strategy, or lets a day order expire. */
  cancel(order: Order, micros: number): void;
  /** Fills part of an order at a market price, in ticks. */
  fill(order: Order, ticks: number, lots: number, micros: number, nanos: number, liquidity: string): void;
  /** Records a step of an order's life, at the given instant or right after its latest step, whichever is later. */
  step(order: Order, micros: number, nanos: number, kind: string, status: string, reason?: string): void;
  /** A price as in rows; empty for 0. */
  price(ticks: number): string;
}

export interface OrderDeskOptions {
  readonly plan: RunPlan;
  readonly instrument: InstrumentPlan;
  readonly ledger: Ledger;
  readonly holding: Holding;
  readonly tally: RunTally;
  readonly books: BookBreak;
  readonly random: Random;
  readonly emit: RowSink;
}

export function orderDesk(options: OrderDeskOptions): OrderDesk {
  const { plan, instrument, ledger, holding, tally, books, random, emit } = options;
  const { lotDecimals } = plan;
  const { tickDecimals } = plan.bars;
  const priceScale = 10n ** BigInt(9 - tickDecimals);
  const venues = [plan.venue, `${plan.venue}-DARK`];
  const keyOf = (table: string, venue: string): string =>
    `"resource_key":${JSON.stringify(`${table}.${venue}.${instrument.symbol}`)},${accountScope(plan, venue, instrument.symbol)}`;
  const fillHead = new Map(venues.map((venue) => [venue, keyOf("fills", venue)]));
  const orderHead = new Map(venues.map((venue) => [venue, keyOf("orders", venue)]));
  const feeCurrency = JSON.stringify(instrument.currency);

  let held = 0;
  let trades = 0;

  const price = (ticks: number): string => (ticks === 0 ? "" : formatScaled(ticks, tickDecimals));
  const quantity = (lots: number): string => formatScaled(lots, lotDecimals);

  const averageOf = (order: Order, kind: string): string => {
    if (order.filled === 0) return "";
    const average = divideHalfEven(order.turnover * priceScale, BigInt(order.filled));
    const isShifted = kind === "FILLED" && books.at("shift-average");
    return formatScaled(isShifted ? average + averageShift : average, 9);
  };

  const step: OrderDesk["step"] = (order, micros, nanos, kind, status, reason = "") => {
    if (micros < order.micros || (micros === order.micros && nanos <= order.nanos)) {
      order.nanos = (order.nanos + 1) % 1000;
      if (order.nanos === 0) order.micros += 1;
    } else {
      order.micros = micros;
      order.nanos = nanos;
    }
    // only for market orders: a limit order may have no later step that reveals the gap
    const isSkipped = kind === "ACCEPTED" && order.type === "MARKET" && books.at("skip-state");
    if (order.lost || isSkipped) return;
    if (kind === "SUBMITTED") tally.orders += 1;
    emit(
      "orders",
      order.micros,
      order.nanos,
      `${orderHead.get(order.venue)}"client_order_id":"${order.clientId}","venue_order_id":"${order.accepted ? order.venueId : ""}","kind":"${kind}","status":"${status}","side":"${order.side}","type":"${order.type}","time_in_force":"${order.timeInForce}","quantity":"${quantity(order.lots)}","price":"${price(order.limit)}","stop_price":"${price(order.stop)}","filled_quantity":"${quantity(order.filled)}","average_price":"${averageOf(order, kind)}","arrival_price":"${price(order.arrival)}","reason":${JSON.stringify(reason)}}`,
    );
  };

  /** The price with the strategy's edge. */
  const withEdge = (side: Side, ticks: number): number => {
    const edge = Math.floor((ticks * plan.edge) / 1_000_000);
    return side === "BUY" ? Math.max(1, ticks - edge) : ticks + edge;
  };

  return {
    get lots() {
      return held;
    },
    get trades() {
      return trades;
    },
    submit(wanted, micros, nanos) {
      tally.submitted += 1;
      const order: Order = {
        clientId: `C-${tally.submitted}`,
        venueId: `V${1_000_000 + tally.submitted}`,
        venue: venues[random.below(4) === 0 ? 1 : 0]!,
        ...wanted,
        // a market order always has fills, which remain
        lost: wanted.type === "MARKET" && books.at("lose-order"),
        filled: 0,
        turnover: 0n,
        micros: 0,
        nanos: 0,
        accepted: false,
        age: 0,
      };
      step(order, micros, nanos, "SUBMITTED", "SUBMITTED");
      return order;
    },
    accept(order, micros) {
      order.accepted = true;
      step(order, micros, random.below(1000), "ACCEPTED", "ACCEPTED");
    },
    cancel(order, micros) {
      if (order.timeInForce === "DAY") {
        step(order, micros, random.below(1000), "EXPIRED", "EXPIRED", "end of day");
        return;
      }
      step(order, micros, random.below(1000), "CANCEL_REQUESTED", "PENDING_CANCEL");
      const canceled = micros + 1_000 + random.below(40_000);
      step(order, canceled, random.below(1000), "CANCELED", "CANCELED", "by the strategy");
    },
    fill(order, marketTicks, lots, micros, nanos, liquidity) {
      const ticks = withEdge(order.side, marketTicks);
      held += order.side === "BUY" ? lots : -lots;
      trades += 1;
      tally.traded += 1;
      order.filled += lots;
      order.turnover += BigInt(ticks) * BigInt(lots);
      const times = books.at("lose-fill") ? 0 : books.at("double-fill") ? 2 : 1;
      for (let time = 0; time < times; time += 1) {
        const booked = holding.fill(order.side, ticks, lots, liquidity === "MAKER" ? makerFee : takerFee);
        const fee = books.at("shift-fee") ? booked + 1n : booked;
        tally.fills += 1;
        tally.fees.set(ledger.currency, (tally.fees.get(ledger.currency) ?? 0n) + fee);
        emit(
          "fills",
          micros,
          nanos,
          `${fillHead.get(order.venue)}"trade_id":"T${tally.traded}","client_order_id":"${order.clientId}","venue_order_id":"${order.venueId}","side":"${order.side}","price":"${price(ticks)}","quantity":"${quantity(lots)}","fee":"${formatScaled(fee, 9)}","fee_currency":${feeCurrency},"liquidity":"${liquidity}"}`,
        );
      }
      const done = order.filled === order.lots ? "FILLED" : "PARTIALLY_FILLED";
      step(order, micros, nanos, done, done);
    },
    step,
    price,
  };
}

/** The fields of a row about an account's trading in an instrument at a venue. */
export function accountScope(plan: RunPlan, venue: string, symbol: string): string {
  return `"account":${JSON.stringify(plan.account)},"portfolio":${JSON.stringify(plan.portfolio)},"venue":${JSON.stringify(venue)},"symbol":${JSON.stringify(symbol)},`;
}
