import { mostBreaks } from "./reconcile-report.ts";

/** A place from which on a series of points is off by an amount. */
export interface Off {
  /** Points by index; the one before is that of the same series, -1 where there is none. */
  readonly point: number;
  readonly before: number;
  readonly amount: bigint;
  readonly what: string;
}

/**
 * What is off in series of points. A point that is off by as much as the point before it adds to the count, and is not
 * listed again: whatever went wrong, it was before.
 */
export class BreakLog {
  rows = 0;
  breaks = 0;
  largest = 0n;
  readonly first: Off[] = [];
  readonly #latest = new Map<string, { point: number; amount: bigint }>();

  /** A point of a series, off by an amount; 0 where it is not. */
  add(series: string, point: number, amount: bigint, what: string): void {
    const latest = this.#latest.get(series);
    if (amount !== 0n) {
      this.breaks++;
      if (size(amount) > size(this.largest)) this.largest = amount;
      if (latest?.amount !== amount && this.first.length < mostBreaks) {
        this.first.push({ point, before: latest?.point ?? -1, amount, what });
      }
    }
    if (latest === undefined) this.#latest.set(series, { point, amount });
    else {
      latest.point = point;
      latest.amount = amount;
    }
  }
}

export function size(amount: bigint): bigint {
  return amount < 0n ? -amount : amount;
}
