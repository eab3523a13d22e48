const dayMs = 86_400_000;
/** No zone changes its clocks twice within a week. */
const weekMs = 7 * dayMs;

/** The local clock of a time zone. */
export class ZoneClock {
  readonly #format: Intl.DateTimeFormat;

  /** @param timeZone IANA name */
  constructor(timeZone: string) {
    this.#format = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
  }

  /** An instant, in milliseconds, as `2027-03-28 03:00:00`. */
  text(ms: number): string {
    return this.#format.format(ms);
  }

  /** The zone's offset from UTC at an instant. */
  offsetMs(ms: number): number {
    return Date.parse(`${this.text(ms).replace(" ", "T")}Z`) - Math.floor(ms / 1000) * 1000;
  }

  /**
   * The instant at which the clocks first show a time; for a skipped time, the end of the gap. The time is given as the
   * instant at which UTC clocks show it. Later times never give earlier instants.
   */
  firstShown(time: number): number {
    const before = time - this.offsetMs(time - dayMs);
    if (this.#shows(before, time)) return before;
    const after = time - this.offsetMs(time + dayMs);
    return this.#shows(after, time) ? after : this.#changeBetween(after, before);
  }

  #shows(at: number, time: number): boolean {
    return at + this.offsetMs(at) === time;
  }

  /** The instants in between at which the clocks are put forward. */
  putForward(from: number, to: number): readonly number[] {
    const found: number[] = [];
    let before = this.offsetMs(from);
    for (let at = from; at < to; at += weekMs) {
      const after = this.offsetMs(at + weekMs);
      if (after > before) found.push(this.#changeBetween(at, at + weekMs));
      before = after;
    }
    return found;
  }

  /** Finds the single change between two instants by bisection. */
  #changeBetween(before: number, after: number): number {
    let [low, high] = [before, after];
    const offset = this.offsetMs(high);
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.offsetMs(middle) === offset) high = middle;
      else low = middle;
    }
    return high;
  }
}
