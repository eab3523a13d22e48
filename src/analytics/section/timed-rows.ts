import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { parse } from "csv-parse";
import { RunvaultError } from "../../model/error.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { type Nanoseconds, parseTime, timestampMax, timestampMin } from "../../model/time.ts";

/** The form of a CSV file of values at instants. */
export interface TimedFile {
  /** What it is, for messages: `the benchmark`. */
  readonly what: string;
  /** Its columns, `timestamp` among them. */
  readonly columns: readonly string[];
  /** Whether there may be no others. */
  readonly isStrict: boolean;
  readonly hint: string;
}

export interface TimedRow {
  readonly at: Nanoseconds;
  /** Its line in the file. */
  readonly line: number;
  readonly cells: Readonly<Record<string, string>>;
  /** An error about this row. */
  refusal(message: string): RunvaultError;
}

/**
 * The rows of a CSV file whose column `timestamp` is RFC 3339 (UTC without an offset) or UNIX nanoseconds. Throws
 * `invalid_argument` with file and line if a column is missing, or a time is not one that rows can have.
 */
export async function* timedRows(
  file: string,
  { what, columns, isStrict, hint }: TimedFile,
  signal?: AbortSignal,
): AsyncGenerator<TimedRow> {
  const refuse = (message: string, line?: number, cause?: unknown) =>
    new RunvaultError("invalid_argument", message, {
      ...{ place: line === undefined ? { file } : { file, line }, hint, cause },
    });
  const headed = (names: string[]): string[] => {
    const trimmed = names.map((name) => name.trim());
    const missing = columns.find((column) => !trimmed.includes(column));
    if (missing !== undefined) {
      const near = nearestName(missing, trimmed);
      const meant =
        near === null
          ? `; its first line names ${trimmed.slice(0, 8).map(short).join(", ")}`
          : `; did you mean ${JSON.stringify(near)}?`;
      throw refuse(`${what} has no column ${missing}${meant}`, 1);
    }
    const other = isStrict ? trimmed.find((name) => !columns.includes(name)) : undefined;
    if (other !== undefined)
      throw refuse(`${what} has a column ${JSON.stringify(other)}, which it does not define`, 1);
    return trimmed;
  };
  const parser = parse({ columns: headed, bom: true, skip_empty_lines: true, info: true });
  const piped = pipeline(createReadStream(file), parser, { signal });
  // a failure of the file reaches the reader below through the parser; this only keeps it from being unhandled
  piped.catch(() => undefined);
  try {
    for await (const { record, info } of parser as AsyncIterable<Item>) {
      const { lines: line } = info;
      const refusal = (message: string) => refuse(message, line);
      yield { at: timeOf(record.timestamp ?? "", refusal, { file, line }), line, cells: record, refusal };
    }
  } catch (thrown) {
    if (thrown instanceof RunvaultError) throw thrown;
    signal?.throwIfAborted();
    const { message, lines } = thrown as Error & { readonly lines?: number };
    throw refuse(
      `${what} cannot be read: ${message.length > 200 ? `${message.slice(0, 200)} …` : message}`,
      lines,
      thrown,
    );
  } finally {
    parser.destroy();
  }
}

/** A cell in a message, shortened if it is long. */
function short(cell: string): string {
  return JSON.stringify(cell.length > 30 ? `${cell.slice(0, 30)}…` : cell);
}

interface Item {
  readonly record: Readonly<Record<string, string>>;
  readonly info: { readonly lines: number };
}

function timeOf(
  text: string,
  refusal: TimedRow["refusal"],
  place: { readonly file: string; readonly line: number },
): Nanoseconds {
  try {
    const at = parseTime(text.trim());
    if (at >= timestampMin && at <= timestampMax) return at;
  } catch (thrown) {
    throw RunvaultError.from(thrown).at(place);
  }
  throw refusal(`not a valid row time: ${JSON.stringify(text)}`);
}
