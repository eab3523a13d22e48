import { mostBreaks } from "./reconcile-report.ts";

/** A point of a series of them, as the pass stands at it. */
export interface Place {
  /** By index; small. */
  readonly series: number;
  /** UNIX nanoseconds. */
  readonly ts: bigint;
  readonly seq: bigint;
}

/** A place from which on a series of points is off by an amount. */
export interface Off extends Place {
  /** The instant of the point before it of the same series; null if there is none. */
  readonly before: bigint | null;
  readonly amount: bigint;
  readonly what: string;
}

/**
 * Records deviations in series of points. A point with the same deviation as the previous one is counted but not listed
 * again: its cause came earlier. Once the list is full, a point costs two comparisons.
 */
export class BreakLog {
  rows = 0;
  breaks = 0;
  readonly first: Off[] = [];
  #most = 0n;
  #least = 0n;
  // of the latest point by series, while breaks are listed
  readonly #amounts: bigint[] = [];
  readonly #instants: bigint[] = [];

  /** The largest amount by its size; the first of two of one size. */
  get largest(): bigint {
    return this.#largest;
  }
  #largest = 0n;

  /** A point of a series, off by an amount, or 0. */
  add(at: Place, amount: bigint, what: string): void {
    if (amount !== 0n) {
      this.breaks++;
      if (amount > this.#most || amount < this.#least) {
        this.#largest = amount;
        this.#most = size(amount);
        this.#least = -this.#most;
      }
    }
    if (this.first.length < mostBreaks) this.#list(at, amount, what);
  }

  #list({ series, ts, seq }: Place, amount: bigint, what: string): void {
    if (amount !== 0n && this.#amounts[series] !== amount)
      this.first.push({ series, ts, seq, before: this.#instants[series] ?? null, amount, what });
    this.#amounts[series] = amount;
    this.#instants[series] = ts;
  }
}

export function size(amount: bigint): bigint {
  return amount < 0n ? -amount : amount;
}
