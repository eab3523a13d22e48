import { RunvaultError } from "../../model/error.ts";
import { Turns } from "../../model/turns.ts";
import { readBadRow } from "../../row/bad-row.ts";
import { type CheckedLine, checkLine, type LineRules, withoutOddZeros } from "../../row/strict-line.ts";
import { rowError } from "./convert-row-error.ts";
import { Drift } from "./drift.ts";

export interface LineByLineInput extends LineRules {
  /** The segment's text, decompressed, cut into chunks anywhere. */
  readonly text: AsyncIterable<Uint8Array>;
  /** The segment's file, for messages. */
  readonly file?: string;
}

/**
 * A line that is not a proper row, as quarantine keeps it; a row that its source set aside is kept as it was on the
 * wire.
 */
export interface BadLine {
  /** Counted from 1. */
  readonly line: number;
  /** Of the line's first byte in the segment's text. */
  readonly offset: number;
  readonly reason: string;
  /** The line as it came, without its line end; base64 where it is not UTF-8. */
  readonly raw: string;
  readonly encoding: "utf8" | "base64";
  /** Its source set it aside: `raw` is the row as it was on the wire, before any map. */
  readonly foreign?: true;
}

/** Receives the lines. Each call is awaited, so a slow sink slows the reader down. */
export interface LineByLineSink {
  /** The line of a proper row, with its line end. */
  good(line: Uint8Array): void | Promise<void>;
  bad(record: BadLine): void | Promise<void>;
}

export interface LineByLineResult {
  readonly good: number;
  readonly bad: number;
  /**
   * What lines contained outside the contract: names of unknown fields, `blank line` for empty lines, which are not
   * rows, `byte order mark`, `odd zeros in decimals`.
   */
  readonly drift: readonly string[];
}

/** A line longer than this ends the segment with an error that names it. */
export const lineLimitBytes = 16 * 1024 * 1024;

/**
 * Reads a segment line by line and separates proper rows from other lines.
 *
 * A good line is kept byte for byte, unknown fields included. Only three things change: blanks around it are removed, a
 * carriage return between its tokens becomes a blank because other readers would end the line there, and exact numbers
 * lose odd zeros. The new segment is then `checked`. Throws `history_identity_conflict` and `value_out_of_range` at the
 * first such row: the line is not damaged, but the table cannot go on. Throws `line_too_long` beyond 16 MiB.
 */
export async function convertLineByLine(
  input: LineByLineInput,
  sink: LineByLineSink,
): Promise<LineByLineResult> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const drift = new Drift();
  let good = 0;
  let bad = 0;
  let number = 0;
  const turns = new Turns();
  for await (const { bytes: whole, offset } of splitLines(input)) {
    number++;
    if (turns.isDue(whole.byteLength)) await turns.next();
    const marked = number === 1 && whole[0] === 0xef && whole[1] === 0xbb && whole[2] === 0xbf;
    if (marked) drift.add("byte order mark");
    const bytes = marked ? whole.subarray(3) : whole;
    const text = decode(decoder, bytes);
    if (text !== undefined && /^[ \t\r]*$/.test(text)) {
      drift.add("blank line");
      continue;
    }
    const checked: CheckedLine =
      text === undefined ? { kind: "bad", reason: "not UTF-8" } : checkLine(text, input);
    switch (checked.kind) {
      case "row": {
        good++;
        const canonical = input.oddZeros ? text! : withoutOddZeros(text!, input.table);
        if (canonical !== text) drift.add("odd zeros in decimals");
        for (const name of checked.unknown) drift.add(name);
        await sink.good(cleanLine(canonical === text ? bytes : Buffer.from(canonical)));
        break;
      }
      case "bad": {
        bad++;
        const setAside = text === undefined ? undefined : readBadRow(text);
        await sink.bad({
          line: number,
          offset,
          ...(setAside !== undefined
            ? { reason: setAside.reason, raw: setAside.text, encoding: "utf8", foreign: true }
            : { reason: checked.reason, ...rawOf(text, whole) }),
        });
        break;
      }
      default:
        throw rowError(checked, input, placeOf(input, number));
    }
  }
  return { good, bad, drift: drift.list() };
}

/** The line as it arrived, for quarantine; `text` if it is UTF-8. */
function rawOf(text: string | undefined, whole: Buffer): Pick<BadLine, "raw" | "encoding"> {
  return text === undefined
    ? { raw: whole.toString("base64"), encoding: "base64" }
    : { raw: whole.toString("utf8"), encoding: "utf8" };
}

function decode(decoder: InstanceType<typeof TextDecoder>, bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch (thrown) {
    if (thrown instanceof TypeError) return undefined;
    throw thrown;
  }
}

const lineFeed = Buffer.from("\n");

function cleanLine(bytes: Buffer): Buffer {
  let start = 0;
  let end = bytes.length;
  while (isBlank(bytes[start])) start++;
  while (end > start && isBlank(bytes[end - 1])) end--;
  const line = Buffer.concat([bytes.subarray(start, end), lineFeed]);
  // no string of a proper row contains one unescaped
  for (let at = line.indexOf(0x0d); at >= 0; at = line.indexOf(0x0d, at)) line[at] = 0x20;
  return line;
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d;
}

/**
 * Lines as bytes, with the offset of each. Bytes, because split2 decodes: it would replace what is not UTF-8 and lose
 * both the bytes that quarantine must keep and their positions. A last line without a line end is a line.
 */
async function* splitLines(input: LineByLineInput): AsyncGenerator<{ bytes: Buffer; offset: number }> {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let offset = 0;
  const refuseLong = (bytes: number, line: number) => {
    if (bytes <= lineLimitBytes) return;
    throw new RunvaultError("line_too_long", `a line is longer than ${lineLimitBytes} bytes`, {
      place: placeOf(input, line),
    });
  };
  let line = 1;
  for await (const piece of input.text) {
    const chunk = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      const rest = chunk.subarray(start, end);
      const bytes = pendingBytes === 0 ? rest : Buffer.concat([...pending, rest]);
      refuseLong(bytes.length, line);
      yield { bytes, offset };
      line++;
      offset += bytes.length + 1;
      pending = [];
      pendingBytes = 0;
      start = end + 1;
    }
    if (start < chunk.length) {
      // the producer may reuse its chunk's memory once the next one is requested
      pending.push(Buffer.from(chunk.subarray(start)));
      pendingBytes += chunk.length - start;
      refuseLong(pendingBytes, line);
    }
  }
  if (pendingBytes > 0) yield { bytes: Buffer.concat(pending), offset };
}

function placeOf({ table, instanceId, runId, file }: LineByLineInput, line: number) {
  return {
    instance: instanceId,
    run: runId,
    table: table.name,
    line,
    ...(file === undefined ? {} : { file }),
  };
}
