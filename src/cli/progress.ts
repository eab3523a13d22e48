import { createRequire } from "node:module";
import { byteText } from "../model/byte-text.ts";
import { plural } from "../model/plural.ts";
import { visible } from "../model/visible-text.ts";

const require = createRequire(import.meta.url);

/** How far a job is; anything may call `add` as often as it likes. */
export interface Progress extends Disposable {
  /** Rows there will be in all; may be corrected. Without it there is no ETA. */
  expect(rows: number): void;
  add(rows: number, bytes: number): void;
  /** What is being worked on now. */
  on(what: string): void;
}

export interface ProgressOptions {
  /** bar: redrawn in place on a terminal; lines: one every few seconds; off: nothing. */
  readonly style: "bar" | "lines" | "off";
  readonly stream: NodeJS.WritableStream;
  readonly write: (text: string) => void;
  /** Milliseconds that only go forward. */
  readonly nowMs?: () => number;
  /** Told true when a bar takes the terminal's last line, false when it gave it back; see `aboveBar`. */
  readonly onBar?: (up: boolean) => void;
  /** Time between lines. Default 5,000. */
  readonly lineEveryMs?: number;
}

/** Starts to show progress. Dispose it before anything else is printed as a result. */
export function showProgress(options: ProgressOptions): Progress {
  const { style, nowMs = () => performance.now(), lineEveryMs = 5_000 } = options;
  const state: State = { rows: 0, bytes: 0, total: null, what: "" };
  const rate = new Rate(nowMs);
  if (style === "off") return progressOf(state, () => {});

  if (style === "lines") {
    const print = () => options.write(`${progressLine(state, rate.perSecond(state.rows))}\n`);
    const timer = setInterval(print, lineEveryMs);
    timer.unref();
    return progressOf(state, () => clearInterval(timer));
  }

  // only where there is a bar: most commands show none
  const { Presets, SingleBar } = require("cli-progress") as typeof import("cli-progress");
  const bar = new SingleBar(
    {
      format: (_, { progress }, payload) =>
        `${state.total === null ? "" : `${"█".repeat(Math.round(Math.min(1, progress) * 20)).padEnd(20, "░")} `}${payload.text}`,
      stream: options.stream,
      hideCursor: false,
      clearOnComplete: true,
      gracefulExit: false,
    },
    Presets.shades_classic,
  );
  bar.start(1, 0, { text: "" });
  options.onBar?.(true);
  const draw = () => {
    bar.setTotal(state.total ?? 1);
    bar.update(state.total === null ? 0 : Math.min(state.rows, state.total), {
      text: progressLine(state, rate.perSecond(state.rows)),
    });
  };
  const timer = setInterval(draw, 250);
  timer.unref();
  return progressOf(state, () => {
    clearInterval(timer);
    bar.stop();
    options.onBar?.(false);
  });
}

/**
 * Text for a terminal whose last line a bar has: takes the bar's line, which is drawn again below. Lines wrap only
 * meanwhile, for the bar switches that off; the cursor is saved anew, for the bar's end goes back to where it was saved.
 */
export function aboveBar(text: string): string {
  return `\r\x1b[K\x1b[?7h${text}\x1b[?7l\x1b7`;
}

interface State {
  rows: number;
  bytes: number;
  total: number | null;
  what: string;
}

function progressOf(state: State, stop: () => void): Progress {
  return {
    expect: (rows) => {
      state.total = rows;
    },
    add: (rows, bytes) => {
      state.rows += rows;
      state.bytes += bytes;
    },
    on: (what) => {
      state.what = visible(what);
    },
    [Symbol.dispose]: stop,
  };
}

/** Rows a second over the last ten seconds or so, so that the ETA follows the gateway as it is now. */
class Rate {
  readonly #nowMs: () => number;
  readonly #marks: { atMs: number; rows: number }[];

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#marks = [{ atMs: nowMs(), rows: 0 }];
  }

  perSecond(rows: number): number {
    const atMs = this.#nowMs();
    this.#marks.push({ atMs, rows });
    while (this.#marks.length > 2 && atMs - this.#marks[0]!.atMs > 10_000) this.#marks.shift();
    const oldest = this.#marks[0]!;
    return atMs === oldest.atMs ? 0 : ((rows - oldest.rows) * 1000) / (atMs - oldest.atMs);
  }
}

/** `alpha-1/2022-01-01: 120,000 of 1,000,000 rows, 53.1 MB, 48,000 rows/s, 18 s left`. */
export function progressLine(state: Readonly<State>, rowsPerSecond: number): string {
  // a job that counts no rows, such as verify, only says where it is
  if (state.what !== "" && state.rows === 0 && state.total === null) return state.what;
  const parts = [
    state.total === null
      ? `${grouped(state.rows)} ${plural(state.rows, "row")}`
      : `${grouped(state.rows)} of ${grouped(state.total)} ${plural(state.total, "row")}`,
    // what is not fetched has no size to show
    ...(state.bytes === 0 ? [] : [byteText(state.bytes)]),
    `${grouped(Math.round(rowsPerSecond))} rows/s`,
  ];
  // the rows are only the first half of the work: what is left then, nobody can say
  if (state.total !== null && state.total > 0 && state.rows >= state.total) parts.push("finishing");
  else if (state.total !== null && rowsPerSecond > 0) {
    parts.push(`${durationText(((state.total - state.rows) / rowsPerSecond) * 1000)} left`);
  }
  return `${state.what === "" ? "" : `${state.what}: `}${parts.join(", ")}`;
}

/** An integer with its digits in groups of three. */
export function grouped(count: number | bigint): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A duration in at most two units. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}
