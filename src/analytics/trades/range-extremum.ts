/** Values in a block: those of a block are looked at one by one. */
const blockSize = 64;

/**
 * The smallest, or largest, of any stretch of a column in constant time: a sparse table over blocks of it, which holds
 * where in the column the extreme of two, four, eight … blocks stands (M. A. Bender and M. Farach-Colton, The LCA Problem
 * Revisited, 2000). Takes the column's length / 64 × its logarithm in 32-bit integers.
 */
export class RangeExtremum {
  readonly #values: ArrayLike<bigint>;
  readonly #isLargest: boolean;
  /** By the logarithm of the number of blocks. */
  readonly #tables: Int32Array[] = [];

  constructor(values: ArrayLike<bigint>, which: "smallest" | "largest") {
    this.#values = values;
    this.#isLargest = which === "largest";
    const blocks = Math.ceil(values.length / blockSize);
    let table = new Int32Array(blocks);
    for (let block = 0; block < blocks; block++) {
      const from = block * blockSize;
      table[block] = this.#scan(from, Math.min(from + blockSize, values.length));
    }
    this.#tables.push(table);
    for (let width = 2; width <= blocks; width *= 2) {
      const next = new Int32Array(blocks - width + 1);
      for (let block = 0; block < next.length; block++) {
        next[block] = this.#better(table[block]!, table[block + width / 2]!);
      }
      this.#tables.push(next);
      table = next;
    }
  }

  /** The extreme value from one index to before another, at least one. */
  over(from: number, to: number): bigint {
    const first = Math.ceil(from / blockSize);
    const last = Math.floor(to / blockSize);
    if (first >= last) return this.#values[this.#scan(from, to)]!;
    const level = 31 - Math.clz32(last - first);
    const table = this.#tables[level]!;
    let place = this.#better(table[first]!, table[last - 2 ** level]!);
    if (from < first * blockSize) place = this.#better(place, this.#scan(from, first * blockSize));
    if (last * blockSize < to) place = this.#better(place, this.#scan(last * blockSize, to));
    return this.#values[place]!;
  }

  #scan(from: number, to: number): number {
    const values = this.#values;
    let place = from;
    let extreme = values[from]!;
    for (let at = from + 1; at < to; at++) {
      const value = values[at]!;
      // the first of equal ones
      if (this.#isLargest ? value <= extreme : value >= extreme) continue;
      place = at;
      extreme = value;
    }
    return place;
  }

  #better(a: number, b: number): number {
    const isSmaller = this.#values[a]! < this.#values[b]!;
    return isSmaller === this.#isLargest ? b : a;
  }
}
