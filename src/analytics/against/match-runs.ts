import type { ExactValues } from "../../duckdb/exact-vector.ts";
import type { FillColumns } from "../trades/fill-columns.ts";
import type { MatchedColumns } from "./fill-index.ts";
import { type FillGroups, type Matches, type MatchLimits, matchFills, noMatches } from "./match-fills.ts";
import type { Book } from "./paired-books.ts";

export const matchings = ["order", "time"] as const;
/**
 * order: fills of one client order id, symbol and side; those of one quantity first, then the rest, the nearest in time
 * each. time: fills of one symbol and side, the nearest in time each, within limits.
 */
export type Matching = (typeof matchings)[number];

/** Fills of a run, with their amounts at the decimals of both. */
export interface ScaledFills extends MatchedColumns {
  readonly fills: FillColumns;
}

/** The decimals that two runs have in common. */
export interface CommonScales {
  readonly price: number;
  readonly quantity: number;
  readonly fee: number;
}

export function commonScales(here: FillColumns, there: FillColumns): CommonScales {
  const most = (name: keyof CommonScales) => Math.max(here.scales[name], there.scales[name]);
  return { price: most("price"), quantity: most("quantity"), fee: most("fee") };
}

export function scaledFills(fills: FillColumns, scales: CommonScales): ScaledFills {
  const { count, ts, seq } = fills;
  const column = (name: keyof CommonScales) => raised(fills[name], scales[name] - fills.scales[name]);
  return { fills, count, ts, seq, price: column("price"), quantity: column("quantity"), fee: column("fee") };
}

function raised(values: ExactValues, decimals: number): ExactValues {
  if (decimals === 0) return values;
  const factor = 10n ** BigInt(decimals);
  return Array.from(values as ArrayLike<bigint>, (value) => value * factor);
}

/** Matches the fills of two runs one to one. `bookOf` gives the same name to books that are compared. */
export function matchRuns(
  here: ScaledFills,
  there: ScaledFills,
  matching: Matching,
  limits: MatchLimits,
  nameOf: { here(book: Book): string; there(book: Book): string },
): Matches {
  const matches = noMatches(here, there);
  const markets = new Numbers<string>();
  const marketsOf = ({ fills }: ScaledFills, name: (book: Book) => string) =>
    fills.positions.map((key) => markets.of(JSON.stringify([name(key), key.instrument.symbol])));
  const [marketHere, marketThere] = [marketsOf(here, nameOf.here), marketsOf(there, nameOf.there)];
  const sides = (run: ScaledFills, of: readonly number[]) =>
    Int32Array.from(run.fills.position, (position, fill) => 2 * of[position]! + run.fills.isBuy[fill]!);
  const market = { here: sides(here, marketHere), there: sides(there, marketThere) };
  if (matching === "time") {
    matchFills(here, there, { ...market, count: 2 * markets.size }, limits, matches);
    return matches;
  }
  const [ids, quantities] = [new Numbers<string>(), new Numbers<bigint>()];
  const orders = {
    here: ordersOf(here, ids),
    there: ordersOf(there, ids),
  };
  const byOrder = grouped(market, orders, 2 * markets.size);
  const amounts = {
    here: Int32Array.from({ length: here.count }, (_, fill) => quantities.of(here.quantity[fill]!)),
    there: Int32Array.from({ length: there.count }, (_, fill) => quantities.of(there.quantity[fill]!)),
  };
  const anyDistance = { withinNs: null, priceWithin: null };
  matchFills(here, there, grouped(byOrder, amounts, byOrder.count), anyDistance, matches);
  matchFills(here, there, byOrder, anyDistance, matches);
  return matches;
}

function ordersOf({ fills }: ScaledFills, ids: Numbers<string>): Int32Array {
  const numbers = fills.orders.map((id) => ids.of(id));
  return Int32Array.from(fills.order!, (order) => numbers[order]!);
}

/** Groups that are split by a second number; `count` is how many the first may have. */
function grouped(
  first: Pick<FillGroups, "here" | "there">,
  second: Pick<FillGroups, "here" | "there">,
  count: number,
): FillGroups {
  const numbers = new Numbers<number>();
  const split = (side: "here" | "there") =>
    first[side].map((group, fill) => numbers.of(second[side][fill]! * count + group));
  const both = { here: split("here"), there: split("there") };
  return { ...both, count: numbers.size };
}

/** Numbers things from 0 in the order of their first occurrence. */
class Numbers<T> {
  readonly #known = new Map<T, number>();

  get size(): number {
    return this.#known.size;
  }

  of(thing: T): number {
    const known = this.#known.get(thing);
    if (known !== undefined) return known;
    this.#known.set(thing, this.#known.size);
    return this.#known.size - 1;
  }
}
