/** What the clocks of a time zone show. */
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

  /** By how much the clocks are ahead of UTC at an instant. */
  offsetMs(ms: number): number {
    return Date.parse(`${this.text(ms).replace(" ", "T")}Z`) - Math.floor(ms / 1000) * 1000;
  }

  /** Whether the clocks showed the same before: they were put back meanwhile. */
  hasShown(ms: number): boolean {
    const back = this.offsetMs(ms - longestShiftMs) - this.offsetMs(ms);
    return back > 0 && this.offsetMs(ms - back) - this.offsetMs(ms) === back;
  }
}

/** No clocks are put back by more. */
const longestShiftMs = 3 * 3_600_000;
