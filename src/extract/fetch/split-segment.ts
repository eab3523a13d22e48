import type { Segment } from "../../archive/manifest/manifest.ts";
import { RunvaultError } from "../../model/error.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { timeOf } from "../plan/table-asks.ts";
import type { SegmentDraft } from "./slice.ts";

/** A part of a segment to be written. */
export interface SegmentPart {
  readonly draft: SegmentDraft;
  readonly text: Uint8Array;
}

/**
 * The parts of a segment's text: the rows before an instant and those from it on, if any, in their original
 * order. Throws `archive_damaged` if a line has no time.
 */
export function splitSegment(segment: Segment, text: Buffer, at: Nanoseconds): SegmentPart[] {
  const { bucket, from, to, sorted } = segment;
  const ahead: Buffer[] = [];
  const behind: Buffer[] = [];
  let start = 0;
  for (let end = text.indexOf(10); end >= 0; end = text.indexOf(10, start)) {
    const line = text.subarray(start, end + 1);
    start = end + 1;
    // after its first row, all rows belong to it
    if (sorted && behind.length > 0) {
      behind.push(line);
      continue;
    }
    const time = timeOf(line.toString("utf8"));
    if (time === null) {
      const number = ahead.length + behind.length + 1;
      throw new RunvaultError("archive_damaged", `line ${number} has no ts_event`, {
        place: { file: segment.file, line: number },
      });
    }
    (BigInt(time) < at ? ahead : behind).push(line);
  }
  const part = (bounds: { from: string; to: string }, lines: readonly Buffer[]) => {
    const bytes = Buffer.concat(lines);
    const longestLine = lines.reduce((longest, line) => Math.max(longest, line.byteLength - 1), 0);
    const sizes = { rows: lines.length, bytes: bytes.byteLength, longestLine };
    return { draft: { bucket, ...bounds, ...sizes, sorted }, text: bytes };
  };
  return [part({ from, to: at.toString() }, ahead), part({ from: at.toString(), to }, behind)].filter(
    ({ draft }) => draft.rows > 0,
  );
}
