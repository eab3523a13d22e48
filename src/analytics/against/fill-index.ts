import type { ExactValues } from "../../duckdb/exact-vector.ts";

/** The columns by which fills are matched. Two compared runs use the same scales. */
export interface MatchedColumns {
  readonly count: number;
  /** UNIX nanoseconds. */
  readonly ts: BigInt64Array;
  readonly seq: BigUint64Array;
  readonly price: ExactValues;
  readonly quantity: ExactValues;
  readonly fee: ExactValues;
}

/**
 * The fills of a run by group, then by time, price, quantity, fee and seq, so that the order of the rows does not
 * matter. A tree with the smallest and largest price of the free places finds the nearest free fill in a price range in
 * logarithmic time, unless prices above and below the range alternate.
 */
export class FillIndex {
  /** Fills in the order of their places. */
  readonly fills: Int32Array;
  /** By group: its first place; one more than there are groups. */
  readonly starts: Int32Array;
  readonly #columns: MatchedColumns;
  readonly #size: number;
  readonly #lowest: Float64Array;
  readonly #highest: Float64Array;

  /** `groups` has a number for each fill, below `count`; -1 for a fill that is not to be matched. */
  constructor(columns: MatchedColumns, groups: Int32Array, count: number) {
    this.#columns = columns;
    this.starts = new Int32Array(count + 1);
    for (const group of groups) if (group >= 0) this.starts[group + 1]!++;
    for (let group = 0; group < count; group++) this.starts[group + 1]! += this.starts[group]!;
    this.fills = new Int32Array(this.starts[count]!);
    const next = this.starts.slice(0, count);
    for (const fill of byTime(columns)) {
      const group = groups[fill]!;
      if (group >= 0) this.fills[next[group]!++] = fill;
    }
    for (let group = 0; group < count; group++)
      this.#sortInstants(this.starts[group]!, this.starts[group + 1]!);
    this.#size = 1;
    while (this.#size < this.fills.length) this.#size *= 2;
    this.#lowest = new Float64Array(2 * this.#size).fill(Number.POSITIVE_INFINITY);
    this.#highest = new Float64Array(2 * this.#size).fill(Number.NEGATIVE_INFINITY);
    for (const [place, fill] of this.fills.entries()) {
      this.#lowest[this.#size + place] = this.#highest[this.#size + place] = Number(columns.price[fill]!);
    }
    for (let node = this.#size - 1; node > 0; node--) this.#refresh(node);
  }

  /** The first place of a group whose fill is not before an instant; the group's end if there is none. */
  from(group: number, ts: bigint): number {
    let [low, high] = [this.starts[group]!, this.starts[group + 1]!];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#columns.ts[this.fills[middle]!]! < ts) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first free place from `from` on, before `to`, with a price in the range; -1 if there is none. */
  next(from: number, to: number, lowest: number, highest: number): number {
    if (from >= to) return -1;
    let [node, level] = [this.#size + from, 0];
    const end = this.#size + to;
    while (node << level < end) {
      if (this.#lowest[node]! <= highest && this.#highest[node]! >= lowest) {
        if (level === 0) return node - this.#size;
        node *= 2;
        level--;
        continue;
      }
      while ((node & 1) === 1) {
        node >>= 1;
        level++;
      }
      if (node === 0) return -1;
      node++;
    }
    return -1;
  }

  /** The last free place before `before`, from `from` on, with a price in the range; -1 if there is none. */
  previous(before: number, from: number, lowest: number, highest: number): number {
    if (before <= from) return -1;
    let [node, level] = [this.#size + before - 1, 0];
    const first = this.#size + from;
    while (((node + 1) << level) - 1 >= first) {
      if (this.#lowest[node]! <= highest && this.#highest[node]! >= lowest) {
        if (level === 0) return node - this.#size;
        node = node * 2 + 1;
        level--;
        continue;
      }
      while (node > 1 && (node & 1) === 0) {
        node >>= 1;
        level++;
      }
      if (node === 1) return -1;
      node--;
    }
    return -1;
  }

  isFree(place: number): boolean {
    return this.#lowest[this.#size + place]! !== Number.POSITIVE_INFINITY;
  }

  /** Marks a fill as matched. */
  take(place: number): void {
    let node = this.#size + place;
    this.#lowest[node] = Number.POSITIVE_INFINITY;
    this.#highest[node] = Number.NEGATIVE_INFINITY;
    for (node >>= 1; node > 0; node >>= 1) this.#refresh(node);
  }

  #refresh(node: number): void {
    this.#lowest[node] = Math.min(this.#lowest[2 * node]!, this.#lowest[2 * node + 1]!);
    this.#highest[node] = Math.max(this.#highest[2 * node]!, this.#highest[2 * node + 1]!);
  }

  #sortInstants(from: number, to: number): void {
    const { ts } = this.#columns;
    for (let first = from; first < to; ) {
      let end = first + 1;
      while (end < to && ts[this.fills[end]!] === ts[this.fills[first]!]) end++;
      if (end - first > 1) this.fills.subarray(first, end).sort((a, b) => compareFills(this.#columns, a, b));
      first = end;
    }
  }
}

/** The order of fills of one instant. */
function compareFills({ price, quantity, fee, seq }: MatchedColumns, a: number, b: number): number {
  for (const column of [price, quantity, fee, seq]) {
    if (column[a]! < column[b]!) return -1;
    if (column[a]! > column[b]!) return 1;
  }
  return a - b;
}

/** Sorts fills by time, as the rows of an archive already are. */
function byTime({ count, ts }: MatchedColumns): Int32Array {
  const fills = Int32Array.from({ length: count }, (_, fill) => fill);
  for (let fill = 1; fill < count; fill++) {
    if (ts[fill]! >= ts[fill - 1]!) continue;
    return fills.sort((a, b) => (ts[a]! < ts[b]! ? -1 : ts[a]! > ts[b]! ? 1 : 0));
  }
  return fills;
}
