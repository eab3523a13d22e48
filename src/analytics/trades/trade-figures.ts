import { formatScaled } from "../../model/fixed-point.ts";
import { floorDivide, type Nanoseconds } from "../../model/time.ts";
import { type Figure, figure, noFigure } from "../figure.ts";
import { exposureOf } from "./exposure.ts";
import type { RunTrades } from "./run-trades.ts";
import { type Grouping, netOf, type Trade } from "./trade.ts";

/** Trades that have something in common, such as their hour. */
export interface TradePart {
  readonly key: string;
  readonly trades: Figure;
  readonly net_pnl: Figure;
  readonly hit_rate: Figure;
  readonly profit_factor: Figure;
}

/** The ways in which trades are broken down. Hour and weekday are those of the last exit, in UTC. */
export const breakdowns = ["symbol", "venue", "side", "hour", "weekday"] as const;
export type Breakdown = (typeof breakdowns)[number];

/** The figures of the trades of one portfolio of an account, in one currency: nothing is added over any of these. */
export interface TradeFigures {
  readonly account: string;
  readonly portfolio: string;
  readonly currency: string;
  readonly grouping: Grouping;
  readonly figures: Readonly<Record<string, Figure>>;
  readonly by: Readonly<Record<Breakdown, readonly TradePart[]>>;
}

const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const nsPerHour = 3_600_000_000_000n;

/**
 * The figures of a run's trades by a grouping, over a period for rates per time; net of fees. Trades that are still
 * open at the end count in the profit, at their mark, and in nothing else.
 */
export function tradeFigures(
  trades: RunTrades,
  grouping: Grouping,
  from: Nanoseconds,
  to: Nanoseconds,
): readonly TradeFigures[] {
  const { fills } = trades;
  const accounts = new Map<string, Gathered>();
  const of = (position: number): Gathered => {
    const { account, portfolio, instrument } = fills.positions[position]!;
    const key = JSON.stringify([account, portfolio, instrument.currency]);
    const known = accounts.get(key) ?? new Gathered({ account, portfolio, currency: instrument.currency });
    accounts.set(key, known);
    known.positions.add(position);
    return known;
  };
  const ends = trades.walk(grouping, { onTrade: (trade) => of(trade.position).add(trade, trades) });
  for (const end of ends) {
    const gathered = of(end.position);
    gathered.total(netOf(fills, end, end.flow + end.value), end.fees, end.feeCurrency);
  }
  return [...accounts.values()].map((gathered) => gathered.figures(trades, grouping, from, to));
}

/** Sums of trades, exact. */
class Sums {
  trades = 0;
  wins = 0;
  losses = 0;
  won = 0n;
  lost = 0n;
  net = 0n;
  holdingNs = 0n;
  /** Trades whose fees are in another currency: they have no net. */
  unknown = 0;

  add(net: bigint | null, holdingNs: bigint): void {
    this.trades++;
    this.holdingNs += holdingNs;
    if (net === null) {
      this.unknown++;
      return;
    }
    this.net += net;
    if (net > 0n) {
      this.wins++;
      this.won += net;
    } else if (net < 0n) {
      this.losses++;
      this.lost -= net;
    }
  }
}

class Gathered {
  readonly positions = new Set<number>();
  readonly #key: Pick<TradeFigures, "account" | "portfolio" | "currency">;
  readonly #closed = new Sums();
  readonly #parts = new Map<Breakdown, Map<string, Sums>>(breakdowns.map((by) => [by, new Map()]));
  #open = 0;
  #net = 0n;
  #fees = 0n;
  #isNetKnown = true;
  #areFeesOne = true;
  #feeCurrency: number | null = null;

  constructor(key: Pick<TradeFigures, "account" | "portfolio" | "currency">) {
    this.#key = key;
  }

  add(trade: Trade, { fills }: RunTrades): void {
    if (trade.isOpen) {
      this.#open++;
      return;
    }
    const { net, from, to, position, venue, isLong } = trade;
    this.#closed.add(net, to - from);
    const hours = floorDivide(to, nsPerHour);
    const days = floorDivide(hours, 24n);
    const keys: Readonly<Record<Breakdown, string>> = {
      symbol: fills.positions[position]!.instrument.symbol,
      venue: fills.venues[venue] ?? "several",
      side: isLong ? "LONG" : "SHORT",
      hour: String(hours - days * 24n).padStart(2, "0"),
      weekday: weekdays[Number(days + 4n - floorDivide(days + 4n, 7n) * 7n)]!,
    };
    for (const by of breakdowns) {
      const parts = this.#parts.get(by)!;
      const sums = parts.get(keys[by]) ?? new Sums();
      sums.add(net, to - from);
      parts.set(keys[by], sums);
    }
  }

  /** Adds a position at the end. */
  total(net: bigint | null, fees: bigint, feeCurrency: number): void {
    if (net === null) this.#isNetKnown = false;
    else this.#net += net;
    if (fees === 0n) return;
    this.#fees += fees;
    this.#feeCurrency ??= feeCurrency;
    if (feeCurrency !== this.#feeCurrency || feeCurrency < 0) this.#areFeesOne = false;
  }

  figures(trades: RunTrades, grouping: Grouping, from: Nanoseconds, to: Nanoseconds): TradeFigures {
    const { fills } = trades;
    const { money, fee } = fills.scales;
    const { currency } = this.#key;
    const convention = `trades ${grouping}, net of fees`;
    const all = { n: this.#closed.trades, from, to };
    const exact = (value: bigint, scale: number, unit: string, words: string, n: number) =>
      figure(formatScaled(value, scale), { unit, convention: words, n, from, to });
    const exposure = exposureOf(trades, this.positions, from, to);
    const ofTime = (value: number | undefined, unit: string, words: string) =>
      value === undefined
        ? noFigure("no time between the first and the last timestamp")
        : figure(value, { unit, convention: words, n: this.positions.size, from, to });
    const feeUnit = fills.feeCurrencies[this.#feeCurrency ?? -1] ?? currency;
    const foreign = noFigure("fees are in another currency than the profit");
    const both = this.#closed.trades + this.#open;
    const turnover = this.#turnover(trades);
    return {
      ...this.#key,
      grouping,
      figures: {
        trades: figure(this.#closed.trades, {
          unit: "trades",
          convention: `trades ${grouping}, closed`,
          ...all,
        }),
        open_trades: figure(this.#open, { unit: "trades", convention: "open at the end", ...all, n: both }),
        ...sumFigures(this.#closed, money, currency, convention, from, to),
        net_pnl: this.#isNetKnown
          ? exact(this.#net, money, currency, "of all fills, net of fees, open positions marked", both)
          : foreign,
        fees: this.#areFeesOne
          ? exact(this.#fees, fee, feeUnit, "of all fills", both)
          : noFigure("fees are in several currencies"),
        turnover: exact(turnover, money, currency, "Σ |value| of all fills, both sides", fills.count),
        time_in_market: ofTime(exposure?.timeInMarket, "ratio", "time with any position open / time"),
        exposure_gross: ofTime(
          exposure?.gross,
          currency,
          "mean over time of Σ |value| at the latest close or fill",
        ),
        exposure_net: ofTime(
          exposure?.net,
          currency,
          "mean over time of Σ value at the latest close or fill",
        ),
      },
      by: Object.fromEntries(
        [...this.#parts].map(([by, parts]) => [
          by,
          [...parts]
            .sort(([a], [b]) => partOrder(by, a, b))
            .map(([key, sums]) => {
              const own = sumFigures(sums, money, currency, convention, from, to);
              return {
                key,
                trades: figure(sums.trades, { unit: "trades", convention, n: sums.trades, from, to }),
                net_pnl: own.closed_net_pnl,
                hit_rate: own.hit_rate,
                profit_factor: own.profit_factor,
              };
            }),
        ]),
      ) as unknown as TradeFigures["by"],
    };
  }

  #turnover({ fills, value }: RunTrades): bigint {
    let sum = 0n;
    for (let fill = 0; fill < fills.count; fill++) {
      const position = fills.position[fill]!;
      if (!this.positions.has(position) || fills.quantity[fill] === 0n) continue;
      const worth = value(position, fills.quantity[fill]!, fills.price[fill]!);
      sum += worth < 0n ? -worth : worth;
    }
    return sum;
  }
}

function partOrder(by: Breakdown, a: string, b: string): number {
  // weeks begin on Monday
  if (by === "weekday") return ((weekdays.indexOf(a) + 6) % 7) - ((weekdays.indexOf(b) + 6) % 7);
  return a < b ? -1 : 1;
}

function sumFigures(
  sums: Sums,
  money: number,
  currency: string,
  convention: string,
  from: Nanoseconds,
  to: Nanoseconds,
) {
  const { trades: n, wins, losses, won, lost, net } = sums;
  const basis = (unit: string) => ({ unit, convention, n, from, to });
  const isUnknown = sums.unknown > 0;
  const unless = (reason: string | null, value: () => Figure): Figure => {
    if (n === 0) return noFigure("no closed trade");
    if (isUnknown) return noFigure("fees are in another currency than the profit");
    return reason === null ? value() : noFigure(reason);
  };
  const mean = (sum: bigint, count: number) => Number(sum) / 10 ** money / count;
  const withoutLosses = losses === 0 ? "no losing trade" : null;
  return {
    closed_net_pnl: unless(null, () => figure(formatScaled(net, money), basis(currency))),
    hit_rate: unless(null, () => figure(wins / n, basis("ratio"))),
    profit_factor: unless(withoutLosses, () => figure(Number(won) / Number(lost), basis("ratio"))),
    payoff: unless(wins === 0 ? "no winning trade" : withoutLosses, () =>
      figure(mean(won, wins) / mean(lost, losses), basis("ratio")),
    ),
    expectancy: unless(null, () => figure(mean(net, n), basis(`${currency} per trade`))),
    holding_time:
      n === 0 ? noFigure("no closed trade") : figure(Number(sums.holdingNs) / n / 1e9, basis("s, mean")),
  };
}
