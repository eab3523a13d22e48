import { RunvaultError } from "../model/error.ts";
import type { RunRef } from "../model/source.ts";
import { rowText } from "../model/text/operator-text.ts";
import { int64Max, int64Min } from "../model/time.ts";
import { type Instant, instantOf, toNanoseconds } from "./instant.ts";
import { parseObject } from "./line-object.ts";

/**
 * Reads the keys of lines in a buffer: ts_event and seq, as two numbers each, because neither fits into one exactly.
 *
 * The usual line starts with run_id, instance_id, seq and ts_event as in canonical lines; these are read in place
 * without making a string. Other lines are parsed as JSON.
 *
 * If seq is numbered here, a row comes with an empty one, in its canonical place after the ids: `seqAt` is where to
 * write the number. Then a line with a seq is not a row; otherwise one without is not.
 */
export class RowKeyReader {
  /** ts_event of the line read last, as an `Instant` has it. */
  tsHigh = 0;
  tsLow = 0;
  /** Its seq: the multiple of 10^15, and the rest. */
  seqHigh = 0;
  seqLow = 0;
  /** Where the value of seq begins, from the line's start, in a row whose seq is numbered here. */
  readonly seqAt: number;
  readonly #run: RunRef;
  readonly #isNumberedHere: boolean;
  readonly #prefix: Words;
  readonly #tsKey = wordsOf('","ts_event":"');
  #buffer: Buffer = Buffer.alloc(0);
  #view = viewOf(this.#buffer);

  /** Lines of other runs are refused. `isNumberedHere`: rows come without a seq. */
  constructor(run: RunRef, isNumberedHere = false) {
    this.#run = run;
    this.#isNumberedHere = isNumberedHere;
    const { instanceId, runId } = run;
    const ids = `{"run_id":${JSON.stringify(runId)},"instance_id":${JSON.stringify(instanceId)},"seq":"`;
    this.#prefix = wordsOf(ids);
    this.seqAt = this.#prefix.length;
  }

  /** Reads lines in this buffer from now on. */
  use(buffer: Buffer): void {
    this.#buffer = buffer;
    this.#view = viewOf(buffer);
  }

  get ts(): bigint {
    return toNanoseconds({ high: this.tsHigh, low: this.tsLow });
  }

  get seq(): bigint {
    return BigInt(this.seqHigh) * 1_000_000_000_000_000n + BigInt(this.seqLow);
  }

  /** Reads ts_event and seq of a line; false if it is not a row. Throws for another run's. */
  read(start: number, end: number): boolean {
    return this.#readInPlace(start, end) || this.#readSlowly(start, end);
  }

  /**
   * Reads the key of the usual line: this run's ids, a seq of at most 15 digits, a ts_event of 19. False for any other
   * line, which may still be a row.
   */
  #readInPlace(start: number, end: number): boolean {
    const view = this.#view;
    const seqAt = start + this.#prefix.length;
    // longer than the longest key, so that no index below exceeds the line
    if (seqAt + 60 >= end || !standsAt(view, start, this.#prefix)) return false;
    if (this.#isNumberedHere) return this.#readTime(seqAt, 0);
    let at = seqAt;
    let seq = 0;
    for (let four = 0; at < seqAt + 12; at += 4) {
      four = fourDigits(view, at);
      if (four < 0) break;
      seq = seq * 10_000 + four;
    }
    for (; at < seqAt + 15; at++) {
      const digit = view.getUint8(at) - 48;
      if (digit < 0 || digit > 9) break;
      seq = seq * 10 + digit;
    }
    return at !== seqAt && this.#readTime(at, seq);
  }

  /** Reads the usual ts_event after a seq that ends here. */
  #readTime(at: number, seq: number): boolean {
    const view = this.#view;
    if (!standsAt(view, at, this.#tsKey)) return false;
    const tsAt = at + this.#tsKey.length;
    const a = fourDigits(view, tsAt);
    const b = fourDigits(view, tsAt + 4);
    const c = fourDigits(view, tsAt + 8);
    const d = fourDigits(view, tsAt + 12);
    // the last three digits, and the one before them a second time
    const e = fourDigits(view, tsAt + 15);
    if ((a | b | c | d | e) < 0 || view.getUint8(tsAt + 19) !== quote) return false;
    const seconds = a * 1_000_000 + b * 100 + Math.floor(c / 100);
    const rest = (c % 100) * 10_000_000 + d * 1000 + (e % 1000);
    if (seconds > latest.high || (seconds === latest.high && rest > latest.low)) return false;
    this.seqHigh = 0;
    this.seqLow = seq;
    this.tsHigh = seconds;
    this.tsLow = rest;
    return true;
  }

  #readSlowly(start: number, end: number): boolean {
    const row = parseObject(this.#buffer, start, end);
    if (row === null) return false;
    const { instanceId, runId } = this.#run;
    if (
      (typeof row.run_id === "string" && row.run_id !== runId) ||
      (typeof row.instance_id === "string" && row.instance_id !== instanceId)
    ) {
      throw new RunvaultError(
        "history_identity_conflict",
        `a row belongs to ${rowText(`${String(row.instance_id)}/${String(row.run_id)}: ${this.#buffer.toString("utf8", start, end)}`)}`,
        {
          hint: "Report it to the gateway's operator: it answered with another run's rows. No rows of this table were stored.",
        },
      );
    }
    if (typeof row.ts_event !== "string" || !/^-?\d{1,19}$/.test(row.ts_event)) return false;
    if (!this.#hasSeq(row.seq, start, end)) return false;
    const ts = BigInt(row.ts_event);
    // not a time that any window could request
    if (ts < int64Min || ts > int64Max) return false;
    const instant = instantOf(ts);
    this.tsHigh = instant.high;
    this.tsLow = instant.low;
    const seq = BigInt(row.seq as string);
    this.seqHigh = Number(seq / 1_000_000_000_000_000n);
    this.seqLow = Number(seq % 1_000_000_000_000_000n);
    return true;
  }

  #hasSeq(seq: unknown, start: number, end: number): boolean {
    if (typeof seq !== "string") return false;
    if (!this.#isNumberedHere) return /^\d{1,20}$/.test(seq);
    const at = start + this.seqAt;
    return seq === "" && at < end && standsAt(this.#view, start, this.#prefix) && this.#buffer[at] === quote;
  }
}

function viewOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}

const quote = 34;

/** The latest time that fits into int64. */
const latest: Instant = instantOf(int64Max);

/** A constant text, as four-byte words for comparison. */
interface Words {
  readonly words: Int32Array;
  /** Bytes of the text, four at least. */
  readonly length: number;
}

function wordsOf(text: string): Words {
  const bytes = Buffer.from(text);
  const { length } = bytes;
  const words = new Int32Array(Math.ceil(length / 4));
  // the last word overlaps the one before if the length is not a multiple of four
  for (let i = 0; i < words.length; i++) words[i] = bytes.readInt32LE(Math.min(i * 4, length - 4));
  return { words, length };
}

/** Whether the text is at `at`, byte for byte. */
function standsAt(view: DataView, at: number, { words, length }: Words): boolean {
  const last = words.length - 1;
  for (let i = 0; i < last; i++) if (view.getInt32(at + i * 4, true) !== words[i]) return false;
  return view.getInt32(at + length - 4, true) === words[last];
}

/** The number in four digits at `at`; -1 if one of the four bytes is not a digit. */
function fourDigits(view: DataView, at: number): number {
  // a digit's byte is 0x30 to 0x39: the remainder is at most 9, and stays below 16 with 6 added
  const digits = view.getInt32(at, true) ^ 0x30303030;
  if (((digits | (digits + 0x06060606)) & 0xf0f0f0f0) !== 0) return -1;
  // neighbours become tens and ones, in the first and the third byte
  const pairs = (Math.imul(digits, 10) + (digits >>> 8)) & 0x00ff00ff;
  return (pairs & 0xff) * 100 + (pairs >>> 16);
}
