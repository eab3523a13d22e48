import type { Nanoseconds } from "../../model/time.ts";
import type { RunTrades } from "./run-trades.ts";
import { type Valuation, valuationOf } from "./valuation.ts";

/** What was held over a stretch of time, all positions together; statistics, in doubles. */
export interface Exposure {
  /** Share of the time in which any position was open. */
  readonly timeInMarket: number;
  /** Means over time of Σ |value| and of Σ value, in the currency. */
  readonly gross: number;
  readonly net: number;
}

/** What a position is worth as time goes on: its quantity, at the latest close or fill. */
class HeldPosition {
  quantity = 0n;
  #gross = 0;
  #net = 0;
  readonly #trades: RunTrades;
  readonly #position: number;
  readonly #value: Valuation;
  readonly #unit: number;
  #since: Nanoseconds;
  #worth = 0;
  #bar = 0;

  constructor(trades: RunTrades, position: number, from: Nanoseconds) {
    const { positions, scales } = trades.fills;
    this.#trades = trades;
    this.#position = position;
    this.#value = valuationOf(positions[position]!.instrument, scales);
    this.#unit = 10 ** scales.money;
    this.#since = from;
  }

  add(fill: number): void {
    const { ts, price, quantity, isBuy } = this.#trades.fills;
    this.advance(ts[fill]!);
    this.quantity += isBuy[fill] === 1 ? quantity[fill]! : -quantity[fill]!;
    this.#mark(price[fill]!);
  }

  /** Lets time pass, past the bars that close meanwhile. */
  advance(to: Nanoseconds): void {
    const bars = this.#trades.barsOf(this.#position);
    if (bars !== null) {
      const { ts, price } = bars.close;
      for (; this.#bar < bars.count && ts[this.#bar]! <= to; this.#bar++) {
        if (this.quantity === 0n) continue;
        this.#pass(ts[this.#bar]!);
        this.#mark(price[this.#bar]!);
      }
    }
    this.#pass(to);
  }

  /** Value × nanoseconds since it was asked last. */
  take(): { readonly gross: number; readonly net: number } {
    const taken = { gross: this.#gross, net: this.#net };
    [this.#gross, this.#net] = [0, 0];
    return taken;
  }

  #mark(price: bigint): void {
    this.#worth = this.quantity === 0n ? 0 : Number(this.#value(this.quantity, price)) / this.#unit;
  }

  #pass(to: Nanoseconds): void {
    if (to <= this.#since) return;
    const held = Number(to - this.#since) * this.#worth;
    this.#net += held;
    this.#gross += Math.abs(held);
    this.#since = to;
  }
}

/** The exposure of these positions between two instants; null where no time lies between them. */
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
