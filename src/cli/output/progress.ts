import { createRequire } from "node:module";
import { visible } from "../../model/text/visible-text.ts";
import { barLine, type Course, progressLine } from "./progress-line.ts";

const require = createRequire(import.meta.url);

/** Shows how far a job is; `add` may be called any number of times. */
export interface Progress extends Disposable {
  /** Expected rows of the job or of the current run; may be corrected. */
  expect(rows: number): void;
  add(rows: number, bytes: number): void;
  /**
   * Parquet of a part of the rows is to be made, or is there: after the rows, that is what takes the time. `planned`: the rows
   * that are counted pass by it.
   */
  conversion(change: "planned" | "asked" | "done"): void;
  /** What is being worked on now. */
  on(what: string): void;
  /**
   * Starts run `number` of `of`: counts rows again and estimates the time left for all. If other runs are in progress
   * beside it, rows are those of all runs, and the runs that have ended are counted.
   */
  run(what: string, number: number, of: number, isAlone?: boolean): void;
  /** A run has ended. */
  ended(): void;
}

export interface ProgressOptions {
  /** bar: redrawn in place on a terminal; lines: one every few seconds; off: nothing. */
  readonly style: "bar" | "lines" | "off";
  readonly stream: NodeJS.WritableStream & { readonly columns?: number };
  readonly write: (text: string) => void;
  /** Milliseconds that only go forward. */
  readonly nowMs?: () => number;
  /** Called with true when a bar takes the terminal's last line, with false when it releases it; see `aboveBar`. */
  readonly onBar?: (up: boolean) => void;
  /** Time between lines. Default 5,000. */
  readonly lineEveryMs?: number;
}

/** Shows progress until disposed. */
export function showProgress(options: ProgressOptions): Progress {
  const { style, stream, nowMs = () => performance.now(), lineEveryMs = 5_000 } = options;
  const state = new State(nowMs);
  if (style === "off") return progressOf(state, () => {});

  if (style === "lines") {
    let last = "";
    const print = () => {
      const line = progressLine(state.course());
      if (line !== "" && line !== last) options.write(`${line}\n`);
      last = line;
    };
    const timer = setInterval(print, lineEveryMs);
    timer.unref();
    return progressOf(state, () => clearInterval(timer));
  }

  // loaded late: most commands show no bar
  const { Presets, SingleBar } = require("cli-progress") as typeof import("cli-progress");
  const bar = new SingleBar(
    {
      format: (_, __, { course }) => barLine(course, stream.columns || 80),
      stream,
      hideCursor: false,
      clearOnComplete: true,
      gracefulExit: false,
      // a line fits, and a killed process must leave the terminal as it was
      linewrap: true,
      // text printed above the bar overwrites its line, so it must be drawn again without a change
      forceRedraw: true,
      fps: 4,
    },
    Presets.shades_classic,
  );
  const draw = () => ({ course: state.course() });
  bar.start(1, 0, draw());
  options.onBar?.(true);
  const timer = setInterval(() => bar.update(0, draw()), 250);
  timer.unref();
  return progressOf(state, () => {
    clearInterval(timer);
    bar.stop();
    options.onBar?.(false);
  });
}

/**
 * Text for a terminal with a bar in its last line: overwrites the bar, which is drawn again below. Saves the cursor
 * again, because the bar's end returns to the saved place.
 */
export function aboveBar(text: string): string {
  return `${leaveBarLine}${text}${backToBarLine}`;
}

/** Written before and after that text when it uses another stream. */
export const leaveBarLine = "\r\x1b[K";
export const backToBarLine = "\x1b7";

function progressOf(state: State, stop: () => void): Progress {
  return {
    expect: (rows) => state.expect(rows),
    add: (rows, bytes) => state.add(rows, bytes),
    conversion: (change) => state.conversion(change),
    on: (what) => state.on(what),
    run: (what, number, of, isAlone) => state.run(what, number, of, isAlone),
    ended: () => state.ended(),
    [Symbol.dispose]: stop,
  };
}

/** The facts about a job, and the estimate from them. */
class State {
  readonly #nowMs: () => number;
  readonly #rate: Rate;
  #what = "";
  #rows = 0;
  #bytes = 0;
  #total: number | null = null;
  readonly #conversions = { planned: 0, asked: 0, done: 0 };
  /** `number`: of the current run; with runs beside each other, one more than have ended. */
  #part: { readonly number: number; readonly of: number } | null = null;
  #isAlone = true;
  #ended = 0;
  /** When the first run began, and the current one; with runs beside each other, when the last one ended. */
  #firstMs = 0;
  #beganMs = 0;
  /** When the last rows came. */
  #rowsMs = 0;
  /** Rows of all runs. */
  #allRows = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#rate = new Rate(nowMs);
  }

  expect(rows: number): void {
    this.#total = rows;
  }

  add(rows: number, bytes: number): void {
    this.#rows += rows;
    this.#bytes += bytes;
    this.#allRows += rows;
    if (rows > 0) this.#rowsMs = this.#nowMs();
  }

  conversion(change: "planned" | "asked" | "done"): void {
    this.#conversions[change] += 1;
  }

  on(what: string): void {
    this.#what = visible(what);
  }

  run(what: string, number: number, of: number, isAlone = true): void {
    this.#isAlone = isAlone;
    if (this.#part === null) this.#firstMs = this.#beganMs = this.#nowMs();
    if (!isAlone) {
      this.#part = { number: this.#ended + 1, of };
      return;
    }
    this.on(what);
    this.#beganMs = this.#nowMs();
    this.#part = { number, of };
    this.#rows = 0;
    this.#bytes = 0;
    this.#total = null;
    Object.assign(this.#conversions, { planned: 0, asked: 0, done: 0 });
  }

  ended(): void {
    this.#ended += 1;
    if (this.#isAlone || this.#part === null) return;
    this.#beganMs = this.#nowMs();
    this.#part = { number: this.#ended + 1, of: this.#part.of };
  }

  course(): Course {
    const perSecond = this.#rate.perSecond(this.#allRows);
    // more than expected: the count was wrong, or rows come again
    const total = this.#total !== null && this.#rows > this.#total ? null : this.#total;
    const part = this.#part !== null && this.#part.of > 1 ? { ...this.#part, isAlone: this.#isAlone } : null;
    const counts = { rows: this.#rows, bytes: this.#bytes, total };
    const leftMs = this.#leftMs(total, perSecond);
    return { what: this.#what, part, ...counts, perSecond, leftMs, converting: this.#converting() };
  }

  /** Where rows are fetched, only once no more come: until then, they say how far the run is. */
  #converting(): Course["converting"] {
    const { planned, asked, done } = this.#conversions;
    if (done < planned) return { number: done + 1, of: planned };
    const isFetched = this.#rows === this.#total || this.#nowMs() - this.#rowsMs > longestPauseMs;
    return isFetched && done < asked ? { number: done + 1, of: asked } : null;
  }

  /** The current run by its rows, the others by the average of past runs. */
  #leftMs(total: number | null, perSecond: number | null): number | null {
    const rows = total === null ? 0 : total - this.#rows;
    const own = rows > 0 && perSecond !== null && perSecond > 0 ? (rows / perSecond) * 1000 : null;
    if (this.#part === null || this.#part.of === 1) return own;
    const { number, of } = this.#part;
    const tookMs = this.#nowMs() - this.#beganMs;
    const meanMs =
      number > 1 ? (this.#beganMs - this.#firstMs) / (number - 1) : own === null ? null : tookMs + own;
    if (meanMs === null) return null;
    const leftMs = (of - number) * meanMs + (own ?? Math.max(0, meanMs - tookMs));
    // the run takes longer than those before it; nobody can say how much longer
    return leftMs < 500 ? null : leftMs;
  }
}

/** After this time without rows, conversions are what takes the time. */
const longestPauseMs = 1_000;

/** Rows a second over the last ten seconds or so, so that the estimate follows the gateway's current speed. */
class Rate {
  readonly #nowMs: () => number;
  readonly #marks: { atMs: number; rows: number }[];

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#marks = [{ atMs: nowMs(), rows: 0 }];
  }

  /** Null without any time. */
  perSecond(rows: number): number | null {
    const atMs = this.#nowMs();
    this.#marks.push({ atMs, rows });
    while (this.#marks.length > 2 && atMs - this.#marks[0]!.atMs > 10_000) this.#marks.shift();
    const oldest = this.#marks[0]!;
    return atMs - oldest.atMs < 100 ? null : ((rows - oldest.rows) * 1000) / (atMs - oldest.atMs);
  }
}
