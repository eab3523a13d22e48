import type { Segment } from "../../archive/manifest/manifest.ts";
import { RunvaultError } from "../../model/error.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { timeOf } from "../plan/table-asks.ts";
import type { SegmentDraft } from "./slice.ts";

/** A part of a segment, as it is to be written. */
export interface SegmentPart {
  readonly draft: SegmentDraft;
  readonly text: Uint8Array;
}

/**
 * The parts of a sorted segment's text: the rows before an instant, and those from it on, where there are any. Throws `archive_damaged`
 * where a line tells no time.
 */
export function splitSegment(segment: Segment, text: Buffer, at: Nanoseconds): SegmentPart[] {
  const { bucket, from, to, sorted } = segment;
  let rows = 0;
  let start = 0;
  let longest = 0;
  let longestBehind = 0;
  let cut: { readonly rows: number; readonly byte: number } | undefined;
  for (let end = text.indexOf(10); end >= 0; end = text.indexOf(10, start)) {
    if (cut === undefined) {
      const time = timeOf(text.toString("utf8", start, end));
      if (time === null) {
        throw new RunvaultError("archive_damaged", `line ${rows + 1} tells no ts_event`, {
          place: { file: segment.file, line: rows + 1 },
        });
      }
      if (BigInt(time) >= at) cut = { rows, byte: start };
    }
    if (cut === undefined) longest = Math.max(longest, end - start);
    else longestBehind = Math.max(longestBehind, end - start);
    rows++;
    start = end + 1;
  }
  cut ??= { rows, byte: text.byteLength };
  const part = (bounds: { from: string; to: string }, lines: number, bytes: Buffer, longestLine: number) => ({
    draft: { bucket, ...bounds, rows: lines, bytes: bytes.byteLength, longestLine, sorted },
    text: bytes,
  });
  return [
    part({ from, to: at.toString() }, cut.rows, text.subarray(0, cut.byte), longest),
    part({ from: at.toString(), to }, rows - cut.rows, text.subarray(cut.byte), longestBehind),
  ].filter(({ draft }) => draft.rows > 0);
}
