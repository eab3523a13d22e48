import type { Exact } from "../instruments/instrument.ts";
import { FillIndex, type MatchedColumns } from "./fill-index.ts";

/** The match of each fill in the other run, by index; -1 if it has none. */
export interface Matches {
  readonly here: Int32Array;
  readonly there: Int32Array;
}

/** How far apart matched fills may be; null for any distance. */
export interface MatchLimits {
  readonly withinNs: bigint | null;
  /** Basis points of the price there. */
  readonly priceWithin: Exact | null;
}

/** A number for each fill of either run: only fills of one group are matched. -1 for those that have no group. */
export interface FillGroups {
  readonly here: Int32Array;
  readonly there: Int32Array;
  readonly count: number;
}

export function noMatches(here: MatchedColumns, there: MatchedColumns): Matches {
  return { here: new Int32Array(here.count).fill(-1), there: new Int32Array(there.count).fill(-1) };
}

/**
 * Matches the unmatched fills of two runs one to one, and adds the pairs to `matches`. Of all pairs within a group and
 * the limits, the one nearest in time is matched first, then the next nearest of the rest, and so on. Ties go to the
 * nearest prices, then quantities, then fees, then the smallest seqs here and there. So the order of the rows does not
 * matter.
 *
 * This does not need all pairs: two fills that are nearest to each other are such a match, and going from a fill to its
 * nearest, again and again, ends at such a pair (nearest-neighbour chain).
 */
export function matchFills(
  here: MatchedColumns,
  there: MatchedColumns,
  groups: FillGroups,
  limits: MatchLimits,
  matches: Matches,
): void {
  const free = (own: Int32Array, matched: Int32Array) =>
    own.map((group, fill) => (matched[fill]! < 0 ? group : -1));
  const [ownHere, ownThere] = [free(groups.here, matches.here), free(groups.there, matches.there)];
  const pairing: readonly [Side, Side] = [
    {
      columns: here,
      groups: ownHere,
      index: new FillIndex(here, ownHere, groups.count),
      matches: matches.here,
    },
    {
      columns: there,
      groups: ownThere,
      index: new FillIndex(there, ownThere, groups.count),
      matches: matches.there,
    },
  ];
  matchEqual(pairing, groups.count);
  const chain: number[] = [];
  for (let group = 0; group < groups.count; group++) {
    for (let place = pairing[0].index.starts[group]!; place < pairing[0].index.starts[group + 1]!; place++) {
      if (!pairing[0].index.isFree(place)) continue;
      // places of the two runs in turn, each the nearest to the one before
      chain.push(place);
      while (chain.length > 0) {
        const side = (chain.length - 1) & 1;
        const last = chain.at(-1)!;
        const nearest = nearestOf(pairing, side as 0 | 1, last, limits);
        if (nearest < 0) chain.pop();
        else if (nearest === chain.at(-2)) {
          const [atHere, atThere] = side === 0 ? [last, nearest] : [nearest, last];
          match(pairing, atHere, atThere);
          chain.length -= 2;
        } else chain.push(nearest);
      }
    }
  }
}

interface Side {
  readonly columns: MatchedColumns;
  readonly groups: Int32Array;
  readonly index: FillIndex;
  readonly matches: Int32Array;
}

function match([here, there]: readonly [Side, Side], atHere: number, atThere: number): void {
  const [own, other] = [here.index.fills[atHere]!, there.index.fills[atThere]!];
  here.matches[own] = other;
  there.matches[other] = own;
  here.index.take(atHere);
  there.index.take(atThere);
}

/** Matches fills that are equal in everything: both indices have them in the same order. */
function matchEqual(sides: readonly [Side, Side], groups: number): void {
  const [here, there] = sides;
  for (let group = 0; group < groups; group++) {
    let [a, b] = [here.index.starts[group]!, there.index.starts[group]!];
    const [endA, endB] = [here.index.starts[group + 1]!, there.index.starts[group + 1]!];
    while (a < endA && b < endB) {
      const order = compareAcross(here.columns, here.index.fills[a]!, there.columns, there.index.fills[b]!);
      if (order === 0) match(sides, a, b);
      if (order <= 0) a++;
      if (order >= 0) b++;
    }
  }
}

function compareAcross(one: MatchedColumns, a: number, other: MatchedColumns, b: number): number {
  for (const column of ["ts", "price", "quantity", "fee"] as const) {
    if (one[column][a]! < other[column][b]!) return -1;
    if (one[column][a]! > other[column][b]!) return 1;
  }
  return 0;
}

/** The place of the nearest free fill of the other run; -1 if none is within the limits. */
function nearestOf(sides: readonly [Side, Side], side: 0 | 1, place: number, limits: MatchLimits): number {
  const own = sides[side];
  const { index, columns } = sides[side === 0 ? 1 : 0];
  const fill = own.index.fills[place]!;
  const group = own.groups[fill]!;
  const [ts, price] = [own.columns.ts[fill]!, own.columns.price[fill]!];
  const { priceWithin, withinNs } = limits;
  const [lowest, highest] = priceWithin === null ? anyPrice : rangeOf(Number(price), priceWithin, side);
  const isWithin = (other: number) => {
    if (priceWithin === null) return true;
    const otherPrice = columns.price[index.fills[other]!]!;
    return isNear(side === 0 ? price : otherPrice, side === 0 ? otherPrice : price, priceWithin);
  };
  // what lies outside the window is not looked at, whatever its prices
  const [first, end] =
    withinNs === null
      ? [index.starts[group]!, index.starts[group + 1]!]
      : [index.from(group, ts - withinNs), index.from(group, ts + withinNs + 1n)];
  const forward = (from: number) => {
    let found = index.next(from, end, lowest, highest);
    while (found >= 0 && !isWithin(found)) found = index.next(found + 1, end, lowest, highest);
    return found;
  };
  const back = (before: number) => {
    let found = index.previous(before, first, lowest, highest);
    while (found >= 0 && !isWithin(found)) found = index.previous(found, first, lowest, highest);
    return found;
  };
  const middle = index.from(group, ts);
  const [after, before] = [forward(middle), back(middle)];
  const tsOf = (at: number) => columns.ts[index.fills[at]!]!;
  const away = (at: number) => (at < 0 ? null : tsOf(at) < ts ? ts - tsOf(at) : tsOf(at) - ts);
  const [awayAfter, awayBefore] = [away(after), away(before)];
  if (awayAfter === null && awayBefore === null) return -1;
  const nearest =
    awayAfter === null || (awayBefore !== null && awayBefore < awayAfter) ? awayBefore! : awayAfter;
  let best = -1;
  const consider = (from: number, step: (at: number) => number) => {
    const instant = tsOf(from);
    for (let at = from; at >= 0 && tsOf(at) === instant; at = step(at)) {
      if (best < 0 || isNearer(own.columns, fill, columns, index.fills[at]!, index.fills[best]!)) best = at;
    }
  };
  if (awayAfter === nearest) consider(after, (at) => forward(at + 1));
  if (awayBefore === nearest) consider(before, back);
  return best;
}

/** Finite, because a taken place has infinities for its range of prices. */
const anyPrice = [-Number.MAX_VALUE, Number.MAX_VALUE] as const;

/** Allows for rounding of doubles; `isNear` decides. */
const slack = 1 + 1e-12;

/** Prices of the other run that may be near enough. */
function rangeOf(price: number, { value, scale }: Exact, side: 0 | 1): readonly [number, number] {
  const part = (Number(value) / 10 ** scale / 10_000) * slack;
  if (side === 1) return [price - Math.abs(price) * part * slack, price + Math.abs(price) * part * slack];
  if (part >= 1) return anyPrice;
  const ends = [price / (1 + part), price / (1 - part)].sort((a, b) => a - b) as [number, number];
  return [ends[0] - Math.abs(ends[0]) * 1e-12, ends[1] + Math.abs(ends[1]) * 1e-12];
}

/** Whether prices are within so many basis points of the one there. */
export function isNear(here: bigint, there: bigint, { value, scale }: Exact): boolean {
  const off = here < there ? there - here : here - there;
  return off * 10n ** BigInt(scale + 4) <= value * (there < 0n ? -there : there);
}

/** Whether a fill `a` of the other run, as near in time as `b`, comes before it. */
function isNearer(own: MatchedColumns, fill: number, others: MatchedColumns, a: number, b: number): boolean {
  for (const column of ["price", "quantity", "fee"] as const) {
    const value = own[column][fill]!;
    const [offA, offB] = [size(others[column][a]! - value), size(others[column][b]! - value)];
    if (offA !== offB) return offA < offB;
  }
  return others.seq[a] === others.seq[b] ? a < b : others.seq[a]! < others.seq[b]!;
}

function size(value: bigint): bigint {
  return value < 0n ? -value : value;
}
