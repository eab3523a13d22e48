import type { Nanoseconds } from "../../model/time.ts";
import type { BarColumns } from "./bar-columns.ts";
import type { FillColumns } from "./fill-columns.ts";
import { amountOf, averagePrice } from "./valuation.ts";

/** The best and worst results between entry and exit. */
export interface Excursions {
  /** Maximum adverse excursion of one unit, in price: against the average cost of what was open; zero or below. */
  readonly mae: bigint;
  /** Maximum favourable excursion of one unit: zero or above. */
  readonly mfe: bigint;
  /** The least and the greatest profit of the whole trade before fees, in money, with what was realised by then. */
  readonly maePnl: bigint;
  readonly mfePnl: bigint;
  /** From whole bars between two of the trade's fills; else from the fills alone. */
  readonly source: "bars" | "fills";
}

/** What the price did while the trade was open, and what that was worth; `RunTrades` has both. */
export interface Market {
  barsOf(position: number): BarColumns | null;
  value(position: number, quantity: bigint, price: bigint): bigint;
}

/** More decimals for amounts, so that rounding what a part leaves never reaches the average. */
const guard = 10n ** 20n;

interface Ended {
  readonly position: number;
  readonly isLong: boolean;
  readonly gross: bigint;
  readonly to: Nanoseconds;
  readonly mark: { readonly price: bigint } | null;
}

/** The quantities by which a trade's fills opened and closed it. A fill does one of the two; each kind is in order. */
export class TradePath {
  readonly #entries = { fills: [] as number[], quantities: [] as bigint[] };
  readonly #exits = { fills: [] as number[], quantities: [] as bigint[] };

  enter(fill: number, quantity: bigint): void {
    append(this.#entries, fill, quantity);
  }

  exit(fill: number, quantity: bigint): void {
    append(this.#exits, fill, quantity);
  }

  /**
   * The position is constant between two fills, where profit is monotone in price, so the lows and highs of the bars
   * there are enough. Bars that a fill falls into are left out: they hold prices of before and after.
   */
  excursions(fills: FillColumns, { position, isLong, gross, to, mark }: Ended, market: Market): Excursions {
    const bars = market.barsOf(position);
    const { kind } = fills.positions[position]!.instrument;
    let [open, amount, average, flow, after] = [0n, 0n, 0n, 0n, 0n];
    let isFromBars = false;
    const unit = new Extent();
    const money = new Extent();
    const worth = (quantity: bigint, price: bigint) =>
      market.value(position, isLong ? quantity : -quantity, price);
    const unitAt = (price: bigint) => unit.meet(isLong ? price - average : average - price);
    const runTo = (ts: Nanoseconds) => {
      const within = open === 0n ? null : (bars?.within(after, ts) ?? null);
      if (within === null) return;
      isFromBars = true;
      for (const price of [within.low, within.high]) {
        unitAt(price);
        money.meet(flow + worth(open, price));
      }
    };
    const [entries, exits] = [this.#entries, this.#exits];
    for (let entry = 0, exit = 0; entry + exit < entries.fills.length + exits.fills.length; ) {
      const isEntry = (entries.fills[entry] ?? Infinity) < (exits.fills[exit] ?? Infinity);
      const [fill, quantity] = isEntry
        ? [entries.fills[entry]!, entries.quantities[entry++]!]
        : [exits.fills[exit]!, exits.quantities[exit++]!];
      const [price, ts] = [fills.price[fill]!, fills.ts[fill]!];
      runTo(ts);
      if (open !== 0n) unitAt(price);
      if (isEntry) {
        amount += amountOf(kind, quantity, price) * guard;
        open += quantity;
        average = averagePrice(kind, open * guard, amount);
        unitAt(price);
      } else {
        // what is left has the same average
        amount = (amount * (open - quantity)) / open;
        open -= quantity;
      }
      flow -= worth(isEntry ? quantity : -quantity, price);
      money.meet(flow + worth(open, price));
      after = ts;
    }
    if (mark !== null) {
      runTo(to);
      unitAt(mark.price);
    }
    money.meet(gross);
    const source = isFromBars ? "bars" : "fills";
    return { mae: unit.least, mfe: unit.greatest, maePnl: money.least, mfePnl: money.greatest, source };
  }
}

/** The least and the greatest of zero and the values that it meets. */
class Extent {
  least = 0n;
  greatest = 0n;

  meet(value: bigint): void {
    if (value < this.least) this.least = value;
    if (value > this.greatest) this.greatest = value;
  }
}

function append(list: { readonly fills: number[]; readonly quantities: bigint[] }, fill: number, by: bigint) {
  const last = list.fills.length - 1;
  if (list.fills[last] === fill) list.quantities[last]! += by;
  else {
    list.fills.push(fill);
    list.quantities.push(by);
  }
}
