import { open } from "node:fs/promises";
import { addAbortSignal, type Readable } from "node:stream";
import { RunvaultError } from "../../model/error.ts";
import { unreadable } from "../../model/unreadable.ts";

/** SQL and where it was read. */
export interface SqlText {
  readonly text: string;
  /** The file; null if it was typed. */
  readonly file: string | null;
  /** The line of the file in which it begins, from 1. */
  readonly line: number;
}

/** Longer SQL is not something that a person wrote. */
export const mostSqlBytes = 1024 * 1024;

export function sqlTooLong(file: string | null): RunvaultError {
  const place = file === null ? {} : { place: { file } };
  return new RunvaultError("invalid_argument", "the SQL is longer than 1 MiB", place);
}

/** Reads a file of SQL. */
export async function readSqlFile(file: string, signal: AbortSignal): Promise<SqlText> {
  try {
    await using handle = await open(file);
    return { text: await readAll(handle.createReadStream({ signal }), file), file, line: 1 };
  } catch (error) {
    signal.throwIfAborted();
    throw unreadable(file, error);
  }
}

/** Reads SQL from standard input, to its end. */
export async function readSqlInput(stdin: Readable, signal: AbortSignal): Promise<SqlText> {
  const file = "standard input";
  try {
    return { text: await readAll(addAbortSignal(signal, stdin), file), file, line: 1 };
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/** Lines of standard input as they come, without their ends. */
export async function* sqlLines(stdin: Readable, signal: AbortSignal): AsyncGenerator<string> {
  let rest = "";
  try {
    for await (const text of addAbortSignal(signal, stdin.setEncoding("utf8"))) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      if (rest.length > mostSqlBytes) throw sqlTooLong("standard input");
      for (const line of lines) yield line.replace(/\r$/, "");
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
  if (rest !== "") yield rest;
}

async function readAll(stream: AsyncIterable<Buffer | string>, file: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    const more = Buffer.from(chunk);
    bytes += more.byteLength;
    if (bytes > mostSqlBytes) throw sqlTooLong(file);
    chunks.push(more);
  }
  // editors put a byte order mark before the text
  return Buffer.concat(chunks)
    .toString("utf8")
    .replace(/^\uFEFF/, "");
}

/** Adds the file and line to a statement's error, if it was read from a file. */
export function placedError(thrown: unknown, { file, line }: SqlText): unknown {
  if (!(thrown instanceof RunvaultError) || thrown.code !== "query_invalid" || file === null) return thrown;
  const told = /^LINE (\d+):/m.exec(thrown.message)?.[1];
  const at = told === undefined ? line : line + Number(told) - 1;
  const message = thrown.message.replace(/^LINE \d+:/m, `LINE ${at}:`);
  const { hint = "", cause, place } = thrown;
  const details = { cause, place: { ...place, file, line: at } };
  return new RunvaultError(thrown.code, message, hint === "" ? details : { ...details, hint });
}
