import { RunvaultError } from "../../model/error.ts";
import { type Table, type TableName, tableNamed } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import type { Nanoseconds, TimeBounds } from "../../model/time.ts";
import type { LineSelection, TableReader } from "./table-reader.ts";

/** Runs are moved by whole minutes, which leaves the last ten digits of a time unchanged. */
const unitNanos = 10_000_000_000n;
const movedDigits = 9;
const lineEnd = 10;
const quote = 34;
const zero = 48;

/**
 * Presents a rendered table as another run's, with an id of the same length: its rows have that run's id and are
 * `movedBy` later. Times always have 19 digits, so each line keeps its length and is changed in place.
 */
export function movedReader(
  reader: TableReader,
  table: TableName,
  { instanceId, runId }: RunRef,
  movedBy: Nanoseconds,
): TableReader {
  if (movedBy % unitNanos !== 0n)
    throw new RunvaultError("internal", "a run can be moved only by whole minutes");
  const id = Buffer.from(runId);
  const idAt = '{"run_id":"'.length;
  const seqAt = idAt + id.length + `","instance_id":"${instanceId}","seq":"`.length;
  const eventBehind = '","ts_event":"'.length;
  const initBehind = 19 + '","ts_init":"'.length;
  const others = otherTimes(tableNamed(table));
  const units = Number(movedBy / unitNanos);

  const moveTime = (bytes: Buffer, at: number): void => {
    let time = units;
    let scale = 1;
    for (let digit = movedDigits - 1; digit >= 0; digit -= 1, scale *= 10) {
      time += (bytes[at + digit]! - zero) * scale;
    }
    for (let digit = movedDigits - 1; digit >= 0; digit -= 1) {
      const rest = Math.floor(time / 10);
      bytes[at + digit] = zero + time - rest * 10;
      time = rest;
    }
  };

  /** Moves the line that begins at `start`; returns the start of the next one. */
  const moveLine = (bytes: Buffer, start: number): number => {
    for (let at = 0; at < id.length; at += 1) bytes[start + idAt + at] = id[at]!;
    let at = start + seqAt;
    while (bytes[at] !== quote) at += 1;
    at += eventBehind;
    moveTime(bytes, at);
    at += initBehind;
    moveTime(bytes, at);
    for (const mark of others) {
      at = bytes.indexOf(mark, at) + mark.length;
      moveTime(bytes, at);
    }
    return bytes.indexOf(lineEnd, at) + 1;
  };

  const earlier = (time: Nanoseconds | undefined) => (time === undefined ? undefined : time - movedBy);
  const later = (time: Nanoseconds | undefined) => (time === undefined ? undefined : time + movedBy);
  const within = ({ from, to }: TimeBounds): TimeBounds => ({ from: earlier(from), to: earlier(to) });

  return {
    async count(bounds, known) {
      const { rows, first, last } = await reader.count(within(bounds), earlier(known));
      return { rows, first: later(first), last: later(last) };
    },

    async *lines(selection: LineSelection) {
      const { bounds, known, unknown } = selection;
      const moved = { bounds: within(bounds), known: earlier(known), unknown: earlier(unknown) };
      let rest: Buffer = Buffer.alloc(0);
      for await (const chunk of reader.lines({ ...selection, ...moved })) {
        let start = 0;
        if (rest.length > 0) {
          start = chunk.indexOf(lineEnd) + 1;
          const line = Buffer.concat([rest, start === 0 ? chunk : chunk.subarray(0, start)]);
          rest = line;
          if (start === 0) continue;
          moveLine(line, 0);
          yield line;
        }
        const end = chunk.lastIndexOf(lineEnd) + 1;
        for (let at = start; at < end; ) at = moveLine(chunk, at);
        // a copy, because the yielded bytes belong to the reader
        rest = Buffer.from(chunk.subarray(end));
        if (end > start) yield chunk.subarray(start, end);
      }
    },

    async tail(count, { known, filters }) {
      const lines = await reader.tail(count, { known: earlier(known), filters });
      return lines.map((line) => {
        const bytes = Buffer.from(line);
        moveLine(bytes, 0);
        return bytes.toString();
      });
    },
  };
}

/** The text before each time in a table's lines other than the two that all tables have, in line order. */
function otherTimes({ columns }: Table): Buffer[] {
  return columns
    .filter(({ name, kind }) => kind === "timestamp" && name !== "ts_event" && name !== "ts_init")
    .map(({ name }) => Buffer.from(`"${name}":"`));
}
