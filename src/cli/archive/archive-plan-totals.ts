import { type DiskRoom, hasRoom, leastRoom } from "../../extract/fetch/disk-need.ts";
import type { RunPlan } from "../../extract/plan/plan-run.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { grouped } from "../../model/text/number-text.ts";
import { plural } from "../../model/text/plural.ts";

/** Sums over the plans of all runs. */
export class PlanTotals {
  #upToDate = 0;
  #toFetch = 0;
  #failed = 0;
  #notListed = 0;
  #notTried = 0;
  readonly #slices = new Sum();
  readonly #rows = new Sum();
  readonly #text = new Sum();
  readonly #disk = new Sum();
  #room: DiskRoom | null = null;

  /** A run with a table that cannot be planned counts as failed; its other tables are still summed. */
  add({ upToDate, tables, freeBytes, reserveBytes }: RunPlan): void {
    if (upToDate) this.#upToDate++;
    else if (tables.some(({ error }) => error !== null)) this.#failed++;
    else this.#toFetch++;
    const room = { free: freeBytes, reserve: reserveBytes };
    this.#room = leastRoom([this.#room ?? room, room]);
    for (const table of tables) {
      if (table.error !== null) continue;
      this.#slices.add(table.slices);
      this.#rows.add(table.rows);
      this.#text.add(table.textBytes);
      this.#disk.add(table.diskBytes);
    }
  }

  addFailed(): void {
    this.#failed++;
  }

  addNotListed(): void {
    this.#notListed++;
  }

  addNotTried(runs: number): void {
    this.#notTried += runs;
  }

  /** The known need. */
  get diskBytes(): number {
    return this.#disk.known;
  }

  /** Null if no run was planned. */
  get room(): DiskRoom | null {
    return this.#room;
  }

  /** Null if unknown: without storage facts a gateway cannot be asked for sizes, and some runs could not be planned. */
  get fits(): boolean | null {
    if (this.#room === null) return null;
    if (!hasRoom(this.#room, this.#disk.known)) return false;
    return this.#disk.all === null || !this.#isWhole ? null : true;
  }

  counts() {
    return {
      runs: this.#runs,
      upToDate: this.#upToDate,
      toFetch: this.#toFetch,
      failed: this.#failed,
      notListed: this.#notListed,
      notTried: this.#notTried,
      slices: this.#slices.all,
      rows: this.#rows.all,
      textBytes: this.#text.all,
    };
  }

  /** The space needed by what could be planned, and whether all of it fits. */
  space() {
    const { free = null, reserve = null } = this.#room ?? {};
    return { neededBytes: this.#disk.all, freeBytes: free, reserveBytes: reserve, fits: this.fits };
  }

  /** `3 runs: 1 up to date, 2 to fetch`, and below it the space that they need. */
  text(): string {
    if (this.#runs === 0) return "no runs to archive\n";
    const classes = [
      [this.#upToDate, "up to date"],
      [this.#toFetch, "to fetch"],
      [this.#failed, "failed"],
      [this.#notListed, "no longer listed"],
      [this.#notTried, "not tried"],
    ] as const;
    const counts = classes.flatMap(([count, words]) => (count === 0 ? [] : [`${grouped(count)} ${words}`]));
    const runs = `${grouped(this.#runs)} ${plural(this.#runs, "run")}: ${counts.join(", ")}`;
    const free = this.#room === null ? "" : `, ${byteText(this.#room.free)} free`;
    const { all } = this.#disk;
    if (all === null) {
      return `${runs}\nspace needed is unknown: the gateway has no storage facts${free}; nothing was fetched\n`;
    }
    if (all === 0 && this.#rows.known === 0) {
      return `${runs}; ${this.#isWhole ? "nothing to fetch" : "nothing was fetched"}\n`;
    }
    const by = this.#isWhole ? "" : " by what could be planned";
    const slices = this.#slices.all;
    const inSlices = slices === null ? "" : ` in ${grouped(slices)} ${plural(slices, "slice")}`;
    const rows = `${grouped(this.#rows.known)} ${plural(this.#rows.known, "row")}${inSlices}`;
    return `${runs}; ${rows}, ${byteText(this.#text.known)} of text\nabout ${byteText(all)} of disk needed${by}${free}; nothing was fetched\n`;
  }

  /** Whether everything could be planned. */
  get #isWhole(): boolean {
    return this.#failed + this.#notListed + this.#notTried === 0;
  }

  get #runs(): number {
    return this.#upToDate + this.#toFetch + this.#failed + this.#notListed + this.#notTried;
  }
}

/** A sum of numbers, some of which may be unknown. */
class Sum {
  known = 0;
  #isWhole = true;

  add(value: number | null): void {
    if (value === null) this.#isWhole = false;
    else this.known += value;
  }

  /** Null if some are unknown. */
  get all(): number | null {
    return this.#isWhole ? this.known : null;
  }
}
