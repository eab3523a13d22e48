/** Two lines over the same instants, in milliseconds since 1970. */
export interface LinePoints {
  readonly times: Float64Array;
  readonly upper: Float64Array;
  readonly lower: Float64Array;
}

/** Values kept per column: the first point, the smallest and largest of each line, the last point. */
const places = 6;

/**
 * Reduces two lines of any length to as many points as a screen can show: for each column of pixels the first and last
 * point, and the smallest and largest of each line, so the drawing looks the same. Points must come in order of time;
 * either line may have gaps (NaN).
 */
export class ReducedLines {
  readonly #from: number;
  readonly #perColumn: number;
  readonly #points: number[] = [];
  readonly #kept = new Float64Array(places * 3);
  #column = Number.NaN;

  /** From the first instant to the last, in milliseconds, in so many columns. */
  constructor(from: number, to: number, columns: number) {
    this.#from = from;
    this.#perColumn = Math.max((to - from) / columns, Number.MIN_VALUE);
  }

  add(time: number, upper: number, lower: number): void {
    const kept = this.#kept;
    const column = Math.floor((time - this.#from) / this.#perColumn);
    if (column !== this.#column) {
      this.#flush();
      this.#column = column;
      for (let place = 0; place < places; place++) this.#keep(place, time, upper, lower);
      return;
    }
    // the kept value may be a gap, and any number is better
    if (upper < kept[4]! || Number.isNaN(kept[4])) this.#keep(1, time, upper, lower);
    if (upper > kept[7]! || Number.isNaN(kept[7])) this.#keep(2, time, upper, lower);
    if (lower < kept[11]! || Number.isNaN(kept[11])) this.#keep(3, time, upper, lower);
    if (lower > kept[14]! || Number.isNaN(kept[14])) this.#keep(4, time, upper, lower);
    this.#keep(5, time, upper, lower);
  }

  points(): LinePoints {
    this.#flush();
    const of = (line: number) =>
      Float64Array.from({ length: this.#points.length / 3 }, (_, at) => this.#points[at * 3 + line]!);
    return { times: of(0), upper: of(1), lower: of(2) };
  }

  #keep(place: number, time: number, upper: number, lower: number): void {
    this.#kept[place * 3] = time;
    this.#kept[place * 3 + 1] = upper;
    this.#kept[place * 3 + 2] = lower;
  }

  #flush(): void {
    if (Number.isNaN(this.#column)) return;
    const kept = this.#kept;
    const order = Array.from({ length: places }, (_, place) => place).sort(
      (a, b) => kept[a * 3]! - kept[b * 3]!,
    );
    let last = Number.NaN;
    for (const place of order) {
      if (kept[place * 3] === last) continue;
      last = kept[place * 3]!;
      this.#points.push(last, kept[place * 3 + 1]!, kept[place * 3 + 2]!);
    }
    this.#column = Number.NaN;
  }
}
