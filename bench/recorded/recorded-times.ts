import { readFile } from "node:fs/promises";

/** Rows by number, from `start` up to `end`, and the instants of the first and the last of them; zero where there are none. */
export interface Window {
  readonly start: number;
  readonly end: number;
  readonly first: bigint;
  readonly last: bigint;
}

/** The instants of a run's rows, in order: which rows lie within bounds. */
export class RecordedTimes {
  readonly #times: BigInt64Array;

  private constructor(times: BigInt64Array) {
    this.#times = times;
  }

  /** Reads a file of instants, one a line, in nanoseconds. */
  static async read(file: string): Promise<RecordedTimes> {
    return new RecordedTimes(
      BigInt64Array.from((await readFile(file, "utf8")).trimEnd().split("\n"), BigInt),
    );
  }

  get rows(): number {
    return this.#times.length;
  }

  /** The whole run's first instant and its last. */
  get ends(): readonly [bigint, bigint] {
    return [this.#times[0]!, this.#times.at(-1)!];
  }

  /** The first row at an instant or after it. */
  rowAt(instant: bigint): number {
    let [low, high] = [0, this.rows];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#times[middle]! < instant) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The rows from a bound to another, which are counts of a unit; an absent one is open. */
  within(from: string | null | undefined, to: string | null | undefined, unitNs: bigint): Window {
    const rowAt = (bound: string | null | undefined, otherwise: number) =>
      bound === null || bound === undefined ? otherwise : this.rowAt(BigInt(bound) * unitNs);
    const start = rowAt(from, 0);
    const end = Math.max(start, rowAt(to, this.rows));
    const isEmpty = start === end;
    return {
      start,
      end,
      first: isEmpty ? 0n : this.#times[start]!,
      last: isEmpty ? 0n : this.#times[end - 1]!,
    };
  }
}

/** The one run that a recorded gateway has. */
export const recordedRun = { instance_id: "alpha-1", run_id: "recorded" };
