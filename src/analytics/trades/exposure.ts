import { differenceAt, doubleAt } from "../../duckdb/exact-vector.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { BarColumns } from "./bar-columns.ts";
import type { FillColumns } from "./fill-columns.ts";
import type { RunTrades } from "./run-trades.ts";
import { doubleValuationOf } from "./valuation.ts";

/** Exposure over a period, all positions together; statistics, in doubles. */
export interface Exposure {
  /** Share of the time in which any position was open. */
  readonly timeInMarket: number;
  /** Means over time of Σ |value| and of Σ value, in the currency. */
  readonly gross: number;
  readonly net: number;
}

/** The value of a position over time: its quantity at the latest close or fill. */
class HeldPosition {
  quantity = 0n;
  #gross = 0;
  #net = 0;
  readonly #fills: FillColumns;
  readonly #closes: BarColumns["close"] | null;
  readonly #priceOf: (bar: number) => number;
  /** Nanoseconds from the close of a bar to that of another. */
  readonly #lasted: (bar: number, before: number) => number;
  readonly #value: (quantity: number, price: number) => number;
  #since: Nanoseconds;
  #held = 0;
  #worth = 0;
  #bar = 0;

  constructor({ fills, barsOf }: RunTrades, position: number, from: Nanoseconds) {
    const closes = barsOf(position)?.close ?? null;
    this.#fills = fills;
    this.#closes = closes;
    this.#priceOf = doubleAt(closes?.price ?? []);
    this.#lasted = differenceAt(closes?.ts ?? new BigInt64Array(0));
    this.#value = doubleValuationOf(fills.positions[position]!.instrument, fills.scales);
    this.#since = from;
  }

  add(fill: number): void {
    const { ts, price, quantity, isBuy } = this.#fills;
    this.advance(ts[fill]!);
    this.quantity += isBuy[fill] === 1 ? quantity[fill]! : -quantity[fill]!;
    this.#held = Number(this.quantity);
    this.#mark(Number(price[fill]!));
  }

  /** Lets time pass, past the bars that close meanwhile. */
  advance(to: Nanoseconds): void {
    if (this.#closes !== null) {
      const { ts } = this.#closes;
      const end = firstAfter(ts, to, this.#bar);
      if (this.#held !== 0 && this.#bar < end) this.#advancePast(ts, this.#bar, end);
      this.#bar = end;
    }
    this.#pass(to);
  }

  #advancePast(ts: BigInt64Array, bar: number, end: number): void {
    // bars that closed before the period give the position's value at its start
    const first = Math.min(firstAfter(ts, this.#since, bar), end);
    if (first > bar) this.#mark(this.#priceOf(first - 1));
    if (first === end) return;
    this.#pass(ts[first]!);
    this.#mark(this.#priceOf(first));
    for (let next = first + 1; next < end; next++) {
      this.#hold(this.#lasted(next, next - 1));
      this.#mark(this.#priceOf(next));
    }
    this.#since = ts[end - 1]!;
  }

  /** Value × nanoseconds since the last call. */
  take(): { readonly gross: number; readonly net: number } {
    const taken = { gross: this.#gross, net: this.#net };
    [this.#gross, this.#net] = [0, 0];
    return taken;
  }

  #mark(price: number): void {
    this.#worth = this.#held === 0 ? 0 : this.#value(this.#held, price);
  }

  #pass(to: Nanoseconds): void {
    if (to <= this.#since) return;
    this.#hold(Number(to - this.#since));
    this.#since = to;
  }

  #hold(ns: number): void {
    const held = ns * this.#worth;
    this.#net += held;
    this.#gross += Math.abs(held);
  }
}

/** The first place from `start` on in a rising column that is above a value; its length if none is. */
function firstAfter(column: BigInt64Array, value: bigint, start: number): number {
  // as 64 bits, like the column's values, so that no BigInts are made of them
  const limit = BigInt.asIntN(64, value);
  // the place is usually near
  let [from, step] = [start, 1];
  while (from + step <= column.length && column[from + step - 1]! <= limit) {
    from += step;
    step *= 2;
  }
  let to = Math.min(from + step - 1, column.length);
  while (from < to) {
    const middle = (from + to) >> 1;
    if (column[middle]! > limit) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** The exposure of these positions between two instants; null if no time lies between them. */
export function exposureOf(
  trades: RunTrades,
  positions: ReadonlySet<number>,
  from: Nanoseconds,
  to: Nanoseconds,
): Exposure | null {
  return to <= from ? null : exposureOver(trades, positions, [from, to])[0]!;
}

/** The same for each stretch between an instant and the next; the instants have to rise. */
export function exposureOver(
  trades: RunTrades,
  positions: ReadonlySet<number>,
  instants: readonly Nanoseconds[],
): readonly Exposure[] {
  const [from = 0n, ...ends] = instants;
  const { fills } = trades;
  const held = new Map(
    [...positions].map((position) => [position, new HeldPosition(trades, position, from)]),
  );
  let open = 0;
  let inMarket = 0;
  let since = from;
  const pass = (until: Nanoseconds) => {
    if (open > 0 && until > since) inMarket += Number(until - since);
    if (until > since) since = until;
  };
  let fill = 0;
  let begin = from;
  return ends.map((end) => {
    for (; fill < fills.count && fills.ts[fill]! <= end; fill++) {
      const own = held.get(fills.position[fill]!);
      if (own === undefined) continue;
      pass(fills.ts[fill]!);
      const wasOpen = own.quantity !== 0n;
      own.add(fill);
      open += Number(own.quantity !== 0n) - Number(wasOpen);
    }
    pass(end);
    const whole = Number(end - begin);
    let [gross, net] = [0, 0];
    for (const position of held.values()) {
      position.advance(end);
      const taken = position.take();
      gross += taken.gross;
      net += taken.net;
    }
    const exposure = { timeInMarket: inMarket / whole, gross: gross / whole, net: net / whole };
    begin = end;
    inMarket = 0;
    return exposure;
  });
}
