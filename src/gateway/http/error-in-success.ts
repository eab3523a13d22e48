import type { ErrorPlace, RunvaultError } from "../../model/error.ts";
import { excessOf, parseJson } from "../../model/outside-json.ts";
import type { Scrubber } from "../../model/text/scrubber.ts";
import { type ErrorReading, errorInBody } from "./error-answer.ts";

/** Most bytes of an error; a row may be longer. */
const longestErrorBytes = 64 * 1024;
const lineFeed = 0x0a;
const openBrace = 0x7b;

/** How errors in an answer are read. */
export interface ErrorSeen {
  readonly reading: ErrorReading;
  readonly scrubber: Scrubber;
  readonly place: ErrorPlace;
}

/** The error that a document declares with `ok: false`, whatever else it holds; undefined if it does not. */
export function errorInDocument(bytes: Buffer, seen: ErrorSeen): RunvaultError | undefined {
  if (!saysNotOk(bytes) || excessOf(bytes) !== null) return undefined;
  return errorInJson(jsonIn(bytes), seen);
}

/** The same for a parsed document. */
export function errorInJson(json: unknown, { reading, scrubber, place }: ErrorSeen) {
  return notOk(json) && errorInBody(json, "with status 200", reading, scrubber, place);
}

/**
 * Passes on the bytes of rows until a line is the gateway's error, and throws that, even if more rows follow: a gateway
 * that fails in the middle of its answer has no other way to say so.
 */
export async function* untilErrorLine(
  chunks: AsyncGenerator<Buffer, undefined>,
  seen: ErrorSeen,
): AsyncGenerator<Buffer, undefined> {
  /** The unfinished line so far; undefined once it is too long for an error. */
  let open: Buffer | undefined = Buffer.alloc(0);
  for await (const chunk of chunks) {
    for (const start of startsOfSuspects(chunk)) {
      const end = chunk.indexOf(lineFeed, start);
      const line = lineOf(start === 0 ? open : nothing, chunk.subarray(start, end < 0 ? undefined : end));
      const error = line && errorInLine(line, seen);
      if (error === undefined) continue;
      if (start > 0) yield chunk.subarray(0, start);
      throw error;
    }
    yield chunk;
    const rest = chunk.lastIndexOf(lineFeed) + 1;
    open = lineOf(rest === 0 ? open : nothing, chunk.subarray(rest));
  }
}

/** Starts of lines that may be errors: the first, which may have begun in an earlier chunk, and those with an `ok`. */
function* startsOfSuspects(chunk: Buffer): Generator<number> {
  yield 0;
  let last = 0;
  for (let at = chunk.indexOf('"ok"'); at >= 0; at = chunk.indexOf('"ok"', at + 4)) {
    const start = chunk.lastIndexOf(lineFeed, at) + 1;
    // each line once, however often it contains `ok`
    if (start > last) yield start;
    last = start;
  }
}

const nothing = Buffer.alloc(0);

function lineOf(before: Buffer | undefined, more: Buffer): Buffer | undefined {
  if (before === undefined || before.length + more.length > longestErrorBytes) return undefined;
  return Buffer.concat([before, more]);
}

/** The error in a line, if it is one. A row may have a field `ok` too, but has a time and no error. */
function errorInLine(line: Buffer, { reading, scrubber, place }: ErrorSeen): RunvaultError | undefined {
  if (line[0] !== openBrace || !saysNotOk(line)) return undefined;
  const json = notOk(jsonIn(line));
  if (typeof json?.error !== "object" || json.error === null || "ts_event" in json) return undefined;
  return errorInBody(json, "in place of a row", reading, scrubber, place);
}

/** Whether `"ok": false` occurs at all, to avoid parsing documents twice. */
function saysNotOk(bytes: Buffer): boolean {
  for (let at = bytes.indexOf('"ok"'); at >= 0; at = bytes.indexOf('"ok"', at + 4)) {
    if (/^\s*:\s*false/.test(bytes.toString("latin1", at + 4, at + 64))) return true;
  }
  return false;
}

function jsonIn(bytes: Buffer): unknown {
  try {
    return parseJson(bytes.toString("utf8"));
  } catch {
    // the reader of the document or row reports invalid JSON
    return undefined;
  }
}

function notOk(json: unknown): { readonly error?: unknown } | undefined {
  return typeof json === "object" && json !== null && "ok" in json && json.ok === false
    ? (json as { readonly error?: unknown })
    : undefined;
}
