import { RunvaultError } from "../../model/error.ts";
import { parseJson } from "../../model/outside-json.ts";
import type { RunRef } from "../../model/source.ts";
import type { Nanoseconds, TimeBounds } from "../../model/time.ts";

const lineFeed = 10;
const quote = 34;

/** A range of lines in a segment's text, in bytes, and their number. */
export interface LineSpan {
  readonly start: number;
  /** After the last line's end. */
  readonly end: number;
  readonly rows: number;
}

/** The lines of a sorted segment's text within the bounds, found by binary search. */
export function linesWithin(text: Buffer, run: RunRef, { from, to }: TimeBounds): LineSpan {
  const heads = lineHeads(run);
  const start = from === undefined ? 0 : firstLineAt(text, heads, from, 0);
  const end = to === undefined ? text.byteLength : firstLineAt(text, heads, to, start);
  return { start, end, rows: countLineEnds(text, start, end) };
}

/** Where the first `rows` lines from `start` end; the text's end if it has fewer. */
export function endOfLines(text: Buffer, start: number, rows: number): number {
  let end = start;
  for (let row = 0; row < rows; row++) {
    const at = text.indexOf(lineFeed, end);
    if (at < 0) return text.byteLength;
    end = at + 1;
  }
  return end;
}

/** `ts_event` of the first and last line of a non-empty span. */
export function spanTimes(
  text: Buffer,
  run: RunRef,
  { start, end }: LineSpan,
): { first: Nanoseconds; last: Nanoseconds } {
  const heads = lineHeads(run);
  return {
    first: timeOfLine(text, heads, start, lineEnd(text, start)),
    last: timeOfLine(text, heads, lineStart(text, end - 1), end - 1),
  };
}

/**
 * The start of the first line, from the line at `least`, whose `ts_event` is `time` or later; the text's end if there
 * is none.
 */
function firstLineAt(text: Buffer, heads: LineHeads, time: Nanoseconds, least: number): number {
  let low = least;
  let high = text.byteLength;
  while (low < high) {
    const start = Math.max(low, lineStart(text, (low + high) >>> 1));
    const end = lineEnd(text, start);
    if (timeOfLine(text, heads, start, end) < time) low = end + 1;
    else high = start;
  }
  return low;
}

/** What canonical lines begin with, before and between the numbers of their keys. */
interface LineHeads {
  readonly beforeSeq: Buffer;
  readonly beforeTime: Buffer;
}

function lineHeads({ runId, instanceId }: RunRef): LineHeads {
  const ids = `{"run_id":${JSON.stringify(runId)},"instance_id":${JSON.stringify(instanceId)}`;
  return { beforeSeq: Buffer.from(`${ids},"seq":"`), beforeTime: Buffer.from('","ts_event":"') };
}

function timeOfLine(text: Buffer, heads: LineHeads, start: number, end: number): Nanoseconds {
  return canonicalTime(text, heads, start, end) ?? parsedTime(text, start, end);
}

/** Reads the time in place if the line begins like a canonical one. */
function canonicalTime(
  text: Buffer,
  { beforeSeq, beforeTime }: LineHeads,
  start: number,
  end: number,
): Nanoseconds | null {
  const seqAt = start + beforeSeq.byteLength;
  if (seqAt > end || text.compare(beforeSeq, 0, undefined, start, seqAt) !== 0) return null;
  const seqEnd = text.indexOf(quote, seqAt);
  const timeAt = seqEnd + beforeTime.byteLength;
  if (seqEnd < 0 || timeAt > end || text.compare(beforeTime, 0, undefined, seqEnd, timeAt) !== 0) return null;
  const digits = text.toString("latin1", timeAt, text.indexOf(quote, timeAt));
  return /^-?\d{1,19}$/.test(digits) ? BigInt(digits) : null;
}

function parsedTime(text: Buffer, start: number, end: number): Nanoseconds {
  try {
    const { ts_event } = parseJson(text.toString("utf8", start, end)) as { ts_event?: unknown };
    if (typeof ts_event === "string") return BigInt(ts_event);
  } catch {
    // reported below: whatever is wrong with the line, it has no time
  }
  throw new RunvaultError("archive_damaged", "a line of a segment has no ts_event");
}

function lineStart(text: Buffer, at: number): number {
  return at === 0 ? 0 : text.lastIndexOf(lineFeed, at - 1) + 1;
}

/** Position of the line end. */
function lineEnd(text: Buffer, start: number): number {
  const end = text.indexOf(lineFeed, start);
  return end < 0 ? text.byteLength : end;
}

function countLineEnds(text: Buffer, start: number, end: number): number {
  let rows = 0;
  for (let at = text.indexOf(lineFeed, start); at >= 0 && at < end; at = text.indexOf(lineFeed, at + 1))
    rows++;
  return rows;
}
