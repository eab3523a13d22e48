import { type ErrorPlace, RunvaultError } from "../../../model/error.ts";
import { countLines } from "../../../row/wire/row-lines.ts";
import { asBuffer, timeIn } from "./clip-rows.ts";

const lineFeed = 0x0a;

/** Where pages of rows end, by the number of rows so far. */
export class PageEnds {
  readonly #ends = new Set<number>();
  #rows = 0;

  /** Notes a page of so many rows, when it has ended or before. */
  add(rows: number): void {
    this.#rows += rows;
    if (rows > 0) this.#ends.add(this.#rows);
  }

  /** Whether a page ends after so many rows; ask only once. */
  isEnd(rows: number): boolean {
    return this.#ends.delete(rows);
  }
}

export interface JoinChecks {
  readonly ends: PageEnds;
  readonly place: ErrorPlace;
  /** True if the rows end because enough were received. */
  readonly isFull: (rows: number) => boolean;
  /** The lines of one time, requested separately. */
  readonly linesAt: (time: bigint) => Promise<readonly string[]>;
}

/**
 * Proves that rows without numbers are complete where pages meet. If a page begins at the time at which the previous
 * one ended, the rows of that time are requested once more on their own, and must be the same. A gateway that orders
 * ties differently on each page, or counts places while new rows shift them, repeats one row and hides another, and no
 * count shows it.
 *
 * Chunks are whole lines, and none spans the end of a page. Throws `stream_cut` before the first row after a
 * difference.
 */
export async function* checkJoins(
  chunks: AsyncIterable<Uint8Array>,
  checks: JoinChecks,
): AsyncGenerator<Uint8Array, undefined> {
  let rows = 0;
  /** The lines of the last time so far. */
  let group: Buffer[] = [];
  let time: string | undefined;
  /** Whether a page ended within them. */
  let isJoined = false;
  for await (const chunk of chunks) {
    const lines = asBuffer(chunk);
    const isPageEnd = checks.ends.isEnd(rows);
    const begins = endOf(lines, time, 0);
    if (begins > 0) {
      isJoined ||= isPageEnd;
      group.push(lines.subarray(0, begins));
    }
    if (begins < lines.length) {
      if (isJoined && time !== undefined) await requireSame(time, group, checks);
      const last = lastGroup(lines, begins);
      group = [lines.subarray(last.start)];
      time = last.time;
      isJoined = false;
    }
    rows += countLines(lines);
    yield chunk;
  }
  if (isJoined && time !== undefined && !checks.isFull(rows)) await requireSame(time, group, checks, true);
}

/** Where the lines of one time end that begin at `start`. */
function endOf(lines: Buffer, time: string | undefined, start: number): number {
  let at = start;
  while (at < lines.length) {
    const end = lines.indexOf(lineFeed, at) + 1 || lines.length;
    if (time === undefined || timeIn(lines, at, end) !== time) return at;
    at = end;
  }
  return at;
}

/** The last lines, from `least` on, that share a time. */
function lastGroup(
  lines: Buffer,
  least: number,
): { readonly start: number; readonly time: string | undefined } {
  let start = lines.length;
  let time: string | undefined;
  for (let end = lines.length; end > least; end = start) {
    const before = end < 2 ? -1 : lines.lastIndexOf(lineFeed, end - 2);
    const at = Math.max(least, before + 1);
    const own = timeIn(lines, at, end);
    if (start === lines.length) time = own;
    else if (own !== time) break;
    start = at;
    if (own === undefined) break;
  }
  return { start, time };
}

/** `mayEndShort`: a cap may have ended the rows within this time, which the caller then requests again. */
async function requireSame(
  time: string,
  group: readonly Buffer[],
  checks: JoinChecks,
  mayEndShort = false,
): Promise<void> {
  if (!/^-?\d{1,19}$/.test(time)) return;
  const came = Buffer.concat(group).toString("utf8").split("\n").slice(0, -1);
  const again = await checks.linesAt(BigInt(time));
  const left = new Map<string, number>();
  for (const line of again) left.set(line, (left.get(line) ?? 0) + 1);
  for (const line of came) left.set(line, (left.get(line) ?? 0) - 1);
  const counts = [...left.values()];
  if (counts.every((count) => count === 0 || (mayEndShort && count > 0))) return;
  throw new RunvaultError(
    "stream_cut",
    `the pages of rows are inconsistent: the ${came.length} rows of ${time} on two pages differ from the ${again.length} that a request for this time alone returns`,
    {
      place: checks.place,
      hint:
        again.length === 0
          ? "A request for that time alone returns no rows: the gateway may compare bounds in a coarser unit than `times` in the profile says, so ask its operator."
          : "The gateway may order rows of the same time differently on each page, and rows have no number that would show it: ask its operator for a stable order.",
    },
  );
}
