import type { Archive } from "../../archive/archive.ts";
import { formatScaled } from "../../model/fixed-point.ts";
import type { RunRef } from "../../model/source.ts";
import { formatTime } from "../../model/time.ts";
import { type Exact, exactOf } from "../instruments/instrument.ts";
import type { AccountKey } from "../reconcile/account-key.ts";
import type { Shortfall } from "../shortfall.ts";
import type { FillColumns } from "../trades/fill-columns.ts";
import {
  type AgainstReport,
  type EquityReport,
  type FillsReport,
  type ListedFill,
  mostFills,
} from "./against-report.ts";
import { attributeEquity, type ComparedDay, dayReport } from "./attribute-equity.ts";
import { fillDeltas } from "./fill-deltas.ts";
import { isNear, type Matches } from "./match-fills.ts";
import { commonScales, type Matching, matchRuns, type ScaledFills, scaledFills } from "./match-runs.ts";
import { type Book, booksOf, pairBooks } from "./paired-books.ts";
import { type EquitySeries, type RunSide, readSide, type SideOptions } from "./read-side.ts";

export interface AgainstOptions extends Omit<SideOptions, "signal"> {
  readonly match: Matching;
  /** Largest distance in time: of a match in time mode, of what counts as no difference in both; null for any. */
  readonly withinNs: bigint | null;
  /** The same for prices, in basis points; null: in time mode any match, and in order mode no difference. */
  readonly priceWithin: Exact | null;
  /** In money; null is zero. */
  readonly tolerance: Exact | null;
  readonly signal?: AbortSignal | undefined;
}

/** A run of an archive. */
export interface ArchivedRun {
  readonly archive: Archive;
  readonly run: RunRef;
}

/**
 * Compares two runs, such as a live one with its backtest: their fills, matched one to one, and their equity at the
 * ends of the sessions that both have. Throws what `reconcile` throws of either.
 */
export async function compareRuns(
  here: ArchivedRun,
  there: ArchivedRun,
  options: AgainstOptions,
): Promise<{ readonly report: AgainstReport; readonly shortfalls: readonly Shortfall[] }> {
  const side = await readSide(here.archive, here.run, options);
  const other = await readSide(there.archive, there.run, options);
  return { report: compareSides(side, other, options), shortfalls: [side.shortfall, other.shortfall] };
}

function compareSides(here: RunSide, there: RunSide, options: AgainstOptions): AgainstReport {
  const reasons = [...reasonsOf(here, "here"), ...reasonsOf(there, "there")];
  const [ownBooks, otherBooks] = [booksOfSide(here), booksOfSide(there)];
  const books = pairBooks(ownBooks, otherBooks);
  const compared = compareFills(here, there, options, nameBooks(ownBooks, otherBooks, books));
  if (compared !== null && compared.report.here + compared.report.there === 0)
    reasons.push("neither run has fills");
  const pairs = pairSeries(here.series, there.series, ownBooks, otherBooks, books);
  const matches = compared?.matches ?? { here: new Int32Array(0), there: new Int32Array(0) };
  const notes = booksNotes(books, ownBooks, otherBooks);
  const withFills = compared !== null;
  const equity =
    here.lacking.equity === null && there.lacking.equity === null
      ? pairs.map((pair): EquityReport => seriesReport(here, there, pair, matches, options.tolerance))
      : null;
  if (!withFills && equity !== null)
    notes.push("without the fills of both runs, their part of the difference is in the rest");
  const unpaired = {
    here: here.series.filter((_, index) => !pairs.some((pair) => pair.here === index)).map(seriesName),
    there: there.series.filter((_, index) => !pairs.some((pair) => pair.there === index)).map(seriesName),
  };
  if (equity?.every(({ sessions }) => sessions === 0))
    reasons.push("the equity rows of the two runs have no session in common");
  const isDifferent =
    (compared !== null &&
      compared.report.onlyHere.count + compared.report.onlyThere.count + compared.report.beyond > 0) ||
    (equity ?? []).some(({ different }) => different > 0) ||
    (equity !== null && unpaired.here.length + unpaired.there.length > 0);
  return {
    version: 1,
    against: {
      here: { instance: here.run.instanceId, run: here.run.runId },
      there: { instance: there.run.instanceId, run: there.run.runId },
      verdict: isDifferent ? "DIFFERS" : reasons.length > 0 ? "NOT COMPARED" : "SAME",
      reasons: [...new Set(reasons)],
      options: {
        match: options.match,
        withinNs: options.withinNs === null ? null : String(options.withinNs),
        priceWithin: exactText(options.priceWithin),
        tolerance: exactText(options.tolerance) ?? "0",
        session: options.session,
      },
      fills: compared?.report ?? null,
      equity,
      unpaired,
      notes,
    },
  };
}

function reasonsOf({ lacking, shortfall }: RunSide, where: "here" | "there"): string[] {
  const absent = Object.values(lacking).flatMap((why) => (why === null ? [] : [`${where}, ${why}`]));
  // only if unproven rows are allowed
  const doubtful = shortfall.unproven.map(
    ({ table, state }) => `${where}, ${table} is ${state}: rows may be missing`,
  );
  return [...absent, ...doubtful];
}

function booksOfSide({ series, trades }: RunSide): Book[] {
  return booksOf([...series, ...(trades?.fills.positions ?? [])]);
}

/** Gives books that are compared the same name, and each other book a different one. */
function nameBooks(
  here: readonly Book[],
  there: readonly Book[],
  pairs: readonly (readonly [number, number])[],
) {
  const place = (books: readonly Book[], { account, portfolio }: Book) =>
    books.findIndex((book) => book.account === account && book.portfolio === portfolio);
  const pairOf = (side: 0 | 1, own: number) => pairs.findIndex((pair) => pair[side] === own);
  const name = (side: 0 | 1, own: number) => {
    const pair = pairOf(side, own);
    return pair < 0 ? `${side === 0 ? "here" : "there"} ${own}` : String(pair);
  };
  return {
    here: (book: Book) => name(0, place(here, book)),
    there: (book: Book) => name(1, place(there, book)),
  };
}

function booksNotes(
  pairs: readonly (readonly [number, number])[],
  here: readonly Book[],
  there: readonly Book[],
): string[] {
  return pairs.flatMap(([own, other]) => {
    const [a, b] = [bookName(here[own]!), bookName(there[other]!)];
    return a === b ? [] : [`${a} here is compared with ${b} there`];
  });
}

function bookName({ account, portfolio }: Book): string {
  return portfolio === "" ? account : `${account}/${portfolio}`;
}

function seriesName(series: AccountKey): string {
  return `${bookName(series)} in ${series.currency}`;
}

function pairSeries(
  here: readonly EquitySeries[],
  there: readonly EquitySeries[],
  ownBooks: readonly Book[],
  otherBooks: readonly Book[],
  pairs: readonly (readonly [number, number])[],
) {
  const isOf = (series: AccountKey, book: Book) =>
    series.account === book.account && series.portfolio === book.portfolio;
  return here.flatMap((series, index) => {
    const pair = pairs.find(([own]) => isOf(series, ownBooks[own]!));
    const other =
      pair === undefined
        ? -1
        : there.findIndex((one) => isOf(one, otherBooks[pair[1]]!) && one.currency === series.currency);
    return other < 0 ? [] : [{ here: index, there: other }];
  });
}

function compareFills(
  here: RunSide,
  there: RunSide,
  options: AgainstOptions,
  nameOf: { here(book: Book): string; there(book: Book): string },
): { readonly report: FillsReport; readonly matches: Matches } | null {
  if (here.trades === null || there.trades === null) return null;
  const scales = commonScales(here.trades.fills, there.trades.fills);
  const own = scaledFills(here.trades.fills, scales);
  const other = scaledFills(there.trades.fills, scales);
  const matches = matchRuns(own, other, options.match, options, nameOf);
  const isBeyond = beyondOf(own, other, scales.fee, options);
  let [matched, equal, beyond] = [0, 0, 0];
  const firstBeyond: FillsReport["firstBeyond"] = [];
  for (let fill = 0; fill < own.count; fill++) {
    const match = matches.here[fill]!;
    if (match < 0) continue;
    matched++;
    if (isEqual(own, other, fill, match)) {
      equal++;
      continue;
    }
    if (!isBeyond(fill, match)) continue;
    beyond++;
    if (firstBeyond.length < mostFills)
      firstBeyond.push({ here: listed(own.fills, fill), there: listed(other.fills, match) });
  }
  return {
    matches,
    report: {
      here: own.count,
      there: other.count,
      matched,
      equal,
      beyond,
      onlyHere: unmatched(own.fills, matches.here),
      onlyThere: unmatched(other.fills, matches.there),
      deltas: fillDeltas(own, other, matches, scales),
      firstBeyond,
    },
  };
}

function isEqual(here: ScaledFills, there: ScaledFills, fill: number, match: number): boolean {
  return (
    here.ts[fill] === there.ts[match] &&
    here.price[fill] === there.price[match] &&
    here.quantity[fill] === there.quantity[match] &&
    here.fee[fill] === there.fee[match] &&
    feeCurrencyOf(here.fills, fill) === feeCurrencyOf(there.fills, match)
  );
}

function feeCurrencyOf({ feeCurrencies, feeCurrency }: FillColumns, fill: number): string {
  return feeCurrencies[feeCurrency[fill]!]!;
}

/** Whether matched fills differ by more than is allowed. */
function beyondOf(here: ScaledFills, there: ScaledFills, feeScale: number, options: AgainstOptions) {
  const { withinNs, match, tolerance } = options;
  const within = withinNs ?? (match === "order" ? null : 0n);
  const priceWithin = options.priceWithin ?? exactOf("0");
  const allowed = tolerance ?? exactOf("0");
  return (fill: number, other: number) => {
    const apart = size(here.ts[fill]! - there.ts[other]!);
    const feeOff = size(here.fee[fill]! - there.fee[other]!);
    return (
      (within !== null && apart > within) ||
      !isNear(here.price[fill]!, there.price[other]!, priceWithin) ||
      here.quantity[fill] !== there.quantity[other] ||
      feeOff * 10n ** BigInt(allowed.scale) > allowed.value * 10n ** BigInt(feeScale) ||
      (feeOff !== 0n && feeCurrencyOf(here.fills, fill) !== feeCurrencyOf(there.fills, other))
    );
  };
}

function unmatched(fills: FillColumns, matches: Int32Array): FillsReport["onlyHere"] {
  const first: ListedFill[] = [];
  let count = 0;
  for (let fill = 0; fill < fills.count; fill++) {
    if (matches[fill]! >= 0) continue;
    count++;
    if (first.length < mostFills) first.push(listed(fills, fill));
  }
  return { count, first };
}

function listed(fills: FillColumns, fill: number): ListedFill {
  const { scales } = fills;
  const { account, portfolio, instrument } = fills.positions[fills.position[fill]!]!;
  return {
    seq: String(fills.seq[fill]),
    at: formatTime(fills.ts[fill]!),
    order: fills.orders[fills.order![fill]!]!,
    account,
    portfolio,
    symbol: instrument.symbol,
    side: fills.isBuy[fill] === 1 ? "BUY" : "SELL",
    price: formatScaled(fills.price[fill]!, scales.price),
    quantity: formatScaled(fills.quantity[fill]!, scales.quantity),
    fee: formatScaled(fills.fee[fill]!, scales.fee),
    feeCurrency: feeCurrencyOf(fills, fill),
  };
}

function seriesReport(
  here: RunSide,
  there: RunSide,
  pair: { readonly here: number; readonly there: number },
  matches: Matches,
  tolerance: Exact | null,
): EquityReport {
  const [own, other] = [here.series[pair.here]!, there.series[pair.there]!];
  const { scale, days } = attributeEquity(here, there, pair, matches);
  const { value, scale: decimals } = tolerance ?? exactOf("0");
  const isDifferent = ({ here: a, there: b }: ComparedDay) =>
    size(a - b) * 10n ** BigInt(decimals) > value * 10n ** BigInt(scale);
  const largest = days.reduce<ComparedDay | null>(
    (most, day) => (most === null || size(day.here - day.there) > size(most.here - most.there) ? day : most),
    null,
  );
  const last = days.at(-1);
  return {
    currency: own.currency,
    here: { account: own.account, portfolio: own.portfolio },
    there: { account: other.account, portfolio: other.portfolio },
    sessions: days.length,
    onlyHere: own.closes.length - days.length,
    onlyThere: other.closes.length - days.length,
    different: days.filter(isDifferent).length,
    last: last === undefined ? null : dayReport(last, scale),
    largest: largest === null ? null : dayReport(largest, scale),
    days: days.map((day) => dayReport(day, scale)),
  };
}

function exactText(exact: Exact | null): string | null {
  return exact === null ? null : formatScaled(exact.value, exact.scale);
}

function size(value: bigint): bigint {
  return value < 0n ? -value : value;
}
