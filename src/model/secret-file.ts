import { constants } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { RunvaultError } from "./error.ts";
import { otherReaders } from "./other-readers.ts";
import { unreadable } from "./unreadable.ts";

/** Larger than any key or token; a device would never end. */
const mostBytes = 1024 * 1024;

export interface SecretReading {
  readonly signal: AbortSignal;
  /** Warns of a problem with a file that does not prevent its use. */
  readonly warn: (file: string, text: string) => void;
}

/**
 * Reads a file with a token or key; `what` is the flag or key that names it. Warns if other users may read it. Throws
 * `invalid_argument` if it cannot be read, or is larger than any secret.
 */
export async function readSecretFile(
  what: string,
  file: string,
  { signal, warn }: SecretReading,
): Promise<Buffer> {
  try {
    // a pipe without a writer must not block a thread, which no signal would end
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const bytes = await readAtMost(handle, mostBytes + 1, signal);
    if (bytes.length > mostBytes) {
      throw new RunvaultError("invalid_argument", `${what}: the file is larger than any key or token`, {
        place: { file },
      });
    }
    const readers = otherReaders(await handle.stat());
    if (readers !== null) {
      warn(file, `${what}: ${readers} can read this file; make it private with chmod 600`);
    }
    return bytes;
  } catch (cause) {
    signal.throwIfAborted();
    throw unreadable(file, cause, what);
  }
}

/** The token in such a file. Throws `invalid_argument` if there is none, or no header can carry it. */
export async function readTokenFile(what: string, file: string, reading: SecretReading): Promise<string> {
  const token = (await readSecretFile(what, file, reading)).toString("utf8").trim();
  const fault = tokenFault(token);
  if (fault === null) return token;
  const message = token === "" ? "the token file is empty" : `${what}: ${fault}`;
  throw new RunvaultError("invalid_argument", message, {
    place: { file },
    hint:
      token === "" ? "Write the token into the file." : "Write only the token into the file, on one line.",
  });
}

/** Why a text is not a valid token; null if it is. Never shows it. */
export function tokenFault(token: string): string | null {
  if (token === "") return "the token is empty";
  if (/^bearer\s/i.test(token)) return 'the token begins with "Bearer ", which runvault adds itself';
  const at = token.search(/[^\x21-\x7e]/);
  if (at < 0) return null;
  const code = token.codePointAt(at)!;
  const name = code === 0x20 ? "a space" : code === 0x0a || code === 0x0d ? "a line break" : undefined;
  const what = name ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  return `the token must be printable ASCII without spaces; its character ${at + 1} is ${what}`;
}

/**
 * The current token in such a file, after the old one was refused. Empty if there is none, and for a pipe, which can be
 * read only once: then the refusal stands.
 */
export async function renewedToken(what: string, file: string, reading: SecretReading): Promise<string> {
  try {
    return (await stat(file)).isFile() ? await readTokenFile(what, file, reading) : "";
  } catch {
    reading.signal.throwIfAborted();
    return "";
  }
}

async function readAtMost(handle: FileHandle, most: number, signal: AbortSignal): Promise<Buffer> {
  const buffer = Buffer.alloc(most);
  const isPipe = (await handle.stat()).isFIFO();
  let at = 0;
  for (let waits = 0; at < most; ) {
    const bytesRead = await readNow(handle, buffer, at);
    if (bytesRead > 0) at += bytesRead;
    else if (bytesRead === 0 && !(isPipe && at === 0 && ++waits < mostWaits)) break;
    else await sleep(pipeWaitMs, undefined, { signal });
  }
  return Buffer.from(buffer.subarray(0, at));
}

/** How long to wait for a pipe's writer; once it has opened the pipe, it may take any time. */
const mostWaits = 200;
const pipeWaitMs = 50;

/** Bytes available now; none at the end, or for a pipe without a writer; -1 if the writer has none yet. */
async function readNow(handle: FileHandle, buffer: Buffer, at: number): Promise<number> {
  try {
    return (await handle.read(buffer, at, buffer.length - at)).bytesRead;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return -1;
    throw error;
  }
}
