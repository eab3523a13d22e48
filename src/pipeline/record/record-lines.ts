import type { FileHandle } from "node:fs/promises";
import { z } from "zod";
import { RunvaultError } from "../../model/error.ts";
import { parseJson } from "../../model/outside-json.ts";
import { type BeginLine, type RecordLine, recordLineSchema, recordVersion } from "./job-record.ts";

/** Most bytes of a line: the result lists all troubles, at some hundred bytes for each failed run. */
export const longestLine = 64 * 1024 * 1024;

/** Most bytes of the first line. */
const longestBegin = 1024 * 1024;

const pieceBytes = 64 * 1024;
const lineFeed = 10;

/** A whole line: its bytes, null if they are too many, and its number from 1. */
interface Line {
  readonly bytes: Buffer | null;
  readonly number: number;
}

/** The whole lines of a file; leaves out an unterminated last one, which a kill leaves. */
export async function* wholeLines(handle: FileHandle): AsyncGenerator<Line> {
  let parts: Buffer[] = [];
  let length = 0;
  let number = 1;
  for (let at = 0; ; ) {
    const piece = Buffer.allocUnsafe(pieceBytes);
    const { bytesRead } = await handle.read(piece, 0, pieceBytes, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    let from = 0;
    for (;;) {
      const end = piece.subarray(0, bytesRead).indexOf(lineFeed, from);
      const part = piece.subarray(from, end < 0 ? bytesRead : end);
      length += part.byteLength;
      if (length <= longestLine) parts.push(part);
      else parts = [];
      if (end < 0) break;
      yield { bytes: length <= longestLine ? Buffer.concat(parts, length) : null, number };
      parts = [];
      length = 0;
      number += 1;
      from = end + 1;
    }
  }
}

/** The first line of a file; null if it is not whole. */
export async function firstLine(handle: FileHandle): Promise<Buffer | null> {
  const piece = Buffer.allocUnsafe(longestBegin);
  let read = 0;
  while (read < longestBegin) {
    const { bytesRead } = await handle.read(piece, read, Math.min(pieceBytes, longestBegin - read), read);
    if (bytesRead === 0) return null;
    const end = piece.subarray(read, read + bytesRead).indexOf(lineFeed);
    if (end >= 0) return piece.subarray(0, read + end);
    read += bytesRead;
  }
  throw damaged("its first line does not end");
}

/** The last line of a file of this size; null if it is not whole, after a kill. */
export async function lastLine(handle: FileHandle, size: number): Promise<Buffer | null> {
  const parts: Buffer[] = [];
  let length = 0;
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - pieceBytes);
    const piece = Buffer.allocUnsafe(end - start);
    let read = 0;
    while (read < piece.byteLength) {
      const { bytesRead } = await handle.read(piece, read, piece.byteLength - read, start + read);
      // truncated since it was opened
      if (bytesRead === 0) return null;
      read += bytesRead;
    }
    const isLast = end === size;
    if (isLast && piece.at(-1) !== lineFeed) return null;
    const text = isLast ? piece.subarray(0, -1) : piece;
    const before = text.lastIndexOf(lineFeed);
    const part = text.subarray(before + 1);
    parts.unshift(part);
    length += part.byteLength;
    if (length > longestLine) throw damaged("its last line is too long");
    if (before >= 0) break;
    end = start;
  }
  return Buffer.concat(parts, length);
}

/** Parses a line. Throws `archive_damaged`. */
export function parseLine(bytes: Buffer, number: number | null): RecordLine {
  const which = number === null ? "its last line" : `line ${number}`;
  let value: unknown;
  try {
    value = parseJson(bytes.toString("utf8"));
  } catch {
    throw damaged(`${which} is not JSON`);
  }
  const { kind, version } = (value ?? {}) as { kind?: unknown; version?: unknown };
  if (kind === "begin" && typeof version === "number" && version !== recordVersion) {
    throw new RunvaultError(
      "archive_damaged",
      `the record of an execution has version ${version}, but this runvault reads version ${recordVersion}`,
      { hint: "Use the version of runvault that wrote it." },
    );
  }
  const parsed = recordLineSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw damaged(`${which} is not valid: ${z.prettifyError(parsed.error).split("\n", 1)[0]}`);
}

/** Parses the first line. Throws `archive_damaged`. */
export function parseBegin(bytes: Buffer | null): BeginLine {
  if (bytes === null) throw damaged("it has no whole line");
  const line = parseLine(bytes, 1);
  if (line.kind === "begin") return line;
  throw damaged(`line 1 is of kind ${line.kind}, not begin`);
}

/** The error for an unreadable record. */
export function damaged(what: string): RunvaultError {
  return new RunvaultError("archive_damaged", `the record of an execution is damaged: ${what}`, {
    hint: "Remove the file: it only says what an execution did, and no data depends on it.",
  });
}
