import type { MeasuredRun } from "../../analytics/section/section.ts";
import { exposureOver } from "../../analytics/trades/exposure.ts";
import type { RunTrades } from "../../analytics/trades/run-trades.ts";
import type { Trade } from "../../analytics/trades/trade.ts";
import { formatScaled } from "../../model/fixed-point.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { milliseconds, type SeriesKey } from "./read-curves.ts";

/** One trade in full, its numbers exact. */
export interface ToldTrade {
  readonly symbol: string;
  readonly isLong: boolean;
  readonly quantity: string;
  readonly entry: Nanoseconds;
  readonly exit: Nanoseconds;
  readonly entryPrice: string;
  readonly exitPrice: string;
  readonly fees: string;
  readonly net: string;
  /** In the currency of the series, before fees. */
  readonly mae: number;
  readonly mfe: number;
}

/** The closed trades of one portfolio, in one currency. */
export interface TradesRead extends SeriesKey {
  /** For each trade with a known profit: profit minus fees, and its excursions, in the currency. */
  readonly net: Float64Array;
  readonly mae: Float64Array;
  readonly mfe: Float64Array;
  /** Excursions from the trade's own fills, because no whole bar lies between two of them. */
  readonly fromFills: number;
  /** The ten best and the ten worst; a trade is in one of the two. */
  readonly best: readonly ToldTrade[];
  readonly worst: readonly ToldTrade[];
  /** Σ |value| and Σ value of all positions: means over stretches of time, each with the beginning of its stretch. */
  readonly exposure: {
    readonly times: Float64Array;
    readonly gross: Float64Array;
    readonly net: Float64Array;
  } | null;
}

const most = 10;
/** Stretches of time into which exposure is divided. */
const stretches = 480;

/** The trades of a run by the grouping of its options, and its exposure between two instants. */
export async function readTrades(
  run: MeasuredRun,
  span: { readonly from: Nanoseconds; readonly to: Nanoseconds },
): Promise<readonly TradesRead[]> {
  const trades = await run.trades();
  const gathered = new Map<string, Gathered>();
  const of = (position: number): Gathered => {
    const { account, portfolio, instrument } = trades.fills.positions[position]!;
    const key = { account, portfolio, currency: instrument.currency };
    const name = JSON.stringify(key);
    const own = gathered.get(name) ?? new Gathered(key, trades);
    gathered.set(name, own);
    own.positions.add(position);
    return own;
  };
  for (const position of trades.fills.positions.keys()) of(position);
  trades.walk(run.options.group, { withPaths: true, onTrade: (trade) => of(trade.position).add(trade) });
  return [...gathered.values()].map((own) => own.read(span));
}

class Gathered {
  readonly positions = new Set<number>();
  readonly #key: SeriesKey;
  readonly #trades: RunTrades;
  readonly #net: number[] = [];
  readonly #mae: number[] = [];
  readonly #mfe: number[] = [];
  #fromFills = 0;
  readonly #best = new Ranked((a, b) => (a > b ? -1 : Number(a < b)));
  readonly #worst = new Ranked((a, b) => (a < b ? -1 : Number(a > b)));

  constructor(key: SeriesKey, trades: RunTrades) {
    this.#key = key;
    this.#trades = trades;
  }

  add(trade: Trade): void {
    const { net, isOpen } = trade;
    if (isOpen || net === null) return;
    const { mae, mfe, source } = this.#excursions(trade);
    this.#net.push(this.#money(net));
    this.#mae.push(mae);
    this.#mfe.push(mfe);
    if (source === "fills") this.#fromFills++;
    if (net > 0n) this.#best.add(net, trade);
    else this.#worst.add(net, trade);
  }

  read(span: { readonly from: Nanoseconds; readonly to: Nanoseconds }): TradesRead {
    return {
      ...this.#key,
      ...{ net: Float64Array.from(this.#net), mae: Float64Array.from(this.#mae) },
      ...{ mfe: Float64Array.from(this.#mfe), fromFills: this.#fromFills },
      best: this.#best.trades.map((trade) => this.#told(trade)),
      worst: this.#worst.trades.map((trade) => this.#told(trade)),
      exposure: this.#exposure(span),
    };
  }

  #money(value: bigint): number {
    return Number(value) / 10 ** this.#trades.fills.scales.money;
  }

  /** The least and the greatest result of the whole trade, before fees. */
  #excursions(trade: Trade): { readonly mae: number; readonly mfe: number; readonly source: string } {
    const { maePnl, mfePnl, source } = trade.excursions(this.#trades);
    return { mae: this.#money(maePnl), mfe: this.#money(mfePnl), source };
  }

  #told(trade: Trade): ToldTrade {
    const { scales, positions } = this.#trades.fills;
    const { mae, mfe } = this.#excursions(trade);
    return {
      symbol: positions[trade.position]!.instrument.symbol,
      isLong: trade.isLong,
      quantity: formatScaled(trade.quantity, scales.quantity),
      entry: trade.from,
      exit: trade.to,
      entryPrice: formatScaled(trade.entryPrice, scales.price),
      exitPrice: formatScaled(trade.exitPrice ?? 0n, scales.price),
      fees: formatScaled(trade.fees, scales.fee),
      net: formatScaled(trade.net ?? 0n, scales.money),
      mae,
      mfe,
    };
  }

  #exposure({ from, to }: { readonly from: Nanoseconds; readonly to: Nanoseconds }): TradesRead["exposure"] {
    const step = (to - from) / BigInt(stretches);
    if (step <= 0n) return null;
    const begins = Array.from({ length: stretches }, (_, index) => from + BigInt(index) * step);
    const means = exposureOver(this.#trades, this.positions, [...begins, to]);
    return {
      times: Float64Array.from(begins, milliseconds),
      gross: Float64Array.from(means, ({ gross }) => gross),
      net: Float64Array.from(means, ({ net }) => net),
    };
  }
}

/** The first few trades in an order; equal ones keep their order. */
class Ranked {
  readonly trades: Trade[] = [];
  readonly #nets: bigint[] = [];
  readonly #order: (a: bigint, b: bigint) => number;

  constructor(order: (a: bigint, b: bigint) => number) {
    this.#order = order;
  }

  add(net: bigint, trade: Trade): void {
    const last = this.#nets.at(-1);
    if (this.#nets.length === most && this.#order(net, last!) >= 0) return;
    let at = this.#nets.length;
    while (at > 0 && this.#order(net, this.#nets[at - 1]!) < 0) at--;
    this.#nets.splice(at, 0, net);
    this.trades.splice(at, 0, trade);
    this.#nets.length = Math.min(this.#nets.length, most);
    this.trades.length = this.#nets.length;
  }
}
