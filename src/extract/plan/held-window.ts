import type { Segment } from "../../archive/manifest/manifest.ts";
import type { HeldTable } from "../../archive/write/held-tables.ts";
import type { Nanoseconds } from "../../model/time.ts";

/** A half-open window of ts_event. */
export interface Window {
  readonly from: Nanoseconds;
  readonly to: Nanoseconds;
}

/** A covered window with all rows that came from it. */
export interface HeldWindow extends Window {
  /** Rows in segments, and rows set aside. */
  readonly rows: number;
  readonly segments: readonly Segment[];
}

/** The windows a table's segments cover, in order; parts of one unsorted answer are one window. */
export function heldWindows({
  segments,
  quarantine,
}: Pick<HeldTable, "segments" | "quarantine">): HeldWindow[] {
  const windows = new Map<string, Segment[]>();
  for (const segment of segments) {
    const window = windows.get(windowKey(segment));
    if (window === undefined) windows.set(windowKey(segment), [segment]);
    else window.push(segment);
  }
  const aside = new Map(quarantine.map(({ segment, rows }) => [segment, rows]));
  return [...windows.values()].map((parts) => {
    const { from, to } = parts[0]!;
    const rows = parts.reduce((sum, { file, rows }) => sum + rows + (aside.get(file) ?? 0), 0);
    return { from: BigInt(from), to: BigInt(to), rows, segments: parts };
  });
}

/** Stretches of adjacent windows, each starting where the previous one ends. */
export function contiguous<W extends Window>(windows: readonly W[]): W[][] {
  const stretches: W[][] = [];
  for (const window of windows) {
    const stretch = stretches.at(-1);
    if (stretch?.at(-1)?.to === window.from) stretch.push(window);
    else stretches.push([window]);
  }
  return stretches;
}

/** Splits a stretch into parts of about `most` rows. */
export function ofAboutRows(stretch: readonly HeldWindow[], most: number): HeldWindow[][] {
  const parts: HeldWindow[][] = [];
  let rows = 0;
  for (const window of stretch) {
    if (parts.length === 0 || rows + window.rows > most) {
      parts.push([]);
      rows = 0;
    }
    parts.at(-1)!.push(window);
    rows += window.rows;
  }
  return parts;
}

/** The parts of `[from, to)` that no window covers. */
export function gapsBetween(windows: readonly HeldWindow[], from: Nanoseconds, to: Nanoseconds): Window[] {
  const gaps: Window[] = [];
  let at = from;
  for (const window of windows) {
    if (window.from > at) gaps.push({ from: at, to: window.from < to ? window.from : to });
    if (window.to > at) at = window.to;
  }
  if (at < to) gaps.push({ from: at, to });
  return gaps.filter((gap) => gap.from < gap.to);
}

export function sumRows(windows: readonly HeldWindow[]): number {
  return windows.reduce((sum, { rows }) => sum + rows, 0);
}

/** A window as a lookup key. */
export function windowKey({
  from,
  to,
}: {
  readonly from: bigint | string;
  readonly to: bigint | string;
}): string {
  return `${from} ${to}`;
}
