import type { Nanoseconds } from "../../model/time.ts";
import type { CountRows } from "../run/run-horizon.ts";
import { contiguous, type HeldWindow, sumRows, type Window, windowKey } from "./held-window.ts";

/** A held window with the rows that the gateway counts in it now. */
interface ChangedWindow {
  readonly window: HeldWindow;
  readonly rows: number;
}

/**
 * Finds the held windows whose rows have changed at the gateway (late rows, corrections) by halving the range while the
 * counts differ; `ask` lists windows still to be counted. Equal counts are taken as unchanged. Suspect windows are counted
 * one by one, because their errors may cancel out in a sum.
 */
export function compareCounts(
  windows: readonly HeldWindow[],
  counts: ReadonlyMap<string, number>,
  isSuspect: (window: HeldWindow) => boolean,
): { readonly ask: readonly Window[]; readonly changed: readonly ChangedWindow[] } {
  const ask: Window[] = [];
  const changed: ChangedWindow[] = [];
  const compare = (stretch: readonly HeldWindow[]) => {
    const whole = { from: stretch[0]!.from, to: stretch.at(-1)!.to };
    const rows = counts.get(windowKey(whole));
    if (rows === undefined) ask.push(whole);
    else if (rows === sumRows(stretch)) return;
    else if (stretch.length === 1) changed.push({ window: stretch[0]!, rows });
    else {
      const middle = stretch.length >> 1;
      compare(stretch.slice(0, middle));
      compare(stretch.slice(middle));
    }
  };
  for (const stretch of contiguous(windows)) {
    for (const part of apart(stretch, isSuspect)) compare(part);
  }
  return { ask, changed };
}

/** The same, asking the gateway for the counts it needs: the changed windows, in order. */
export async function changedWindows(
  windows: readonly HeldWindow[],
  isSuspect: (window: HeldWindow) => boolean,
  countRows: CountRows,
): Promise<readonly HeldWindow[]> {
  const counts = new Map<string, number>();
  for (;;) {
    const { ask, changed } = compareCounts(windows, counts, isSuspect);
    if (ask.length === 0) return changed.map(({ window }) => window);
    for (const window of ask) counts.set(windowKey(window), await countRows(window.from, window.to));
  }
}

/**
 * Finds by bisection how far the gateway's counts match the rows received, in a window whose total count differs. Returns a
 * row's time, or the window's beginning.
 */
export async function agreedUntil(
  { from, to }: Window,
  times: readonly Nanoseconds[],
  countRows: CountRows,
): Promise<Nanoseconds> {
  const inOrder = [...times].sort((a, b) => Number(a > b) - Number(a < b));
  const instants = [...new Set([from, ...inOrder, to])];
  let low = 0;
  for (let high = instants.length - 1; high - low > 1; ) {
    const middle = (low + high) >> 1;
    const [begin, end] = [instants[low]!, instants[middle]!];
    const rows = times.filter((ts) => ts >= begin && ts < end).length;
    if ((await countRows(begin, end)) === rows) low = middle;
    else high = middle;
  }
  return instants[low]!;
}

/** Splits a stretch so that each suspect window is a part by itself. */
function apart(
  stretch: readonly HeldWindow[],
  isSuspect: (window: HeldWindow) => boolean,
): readonly HeldWindow[][] {
  const parts: HeldWindow[][] = [];
  let isOpen = false;
  for (const window of stretch) {
    const isAlone = isSuspect(window);
    if (isOpen && !isAlone) parts.at(-1)!.push(window);
    else parts.push([window]);
    isOpen = !isAlone;
  }
  return parts;
}
