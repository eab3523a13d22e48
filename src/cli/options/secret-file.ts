import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { RunvaultError } from "../../model/error.ts";
import { otherReaders } from "../../model/other-readers.ts";
import type { Session } from "../process/session.ts";
import { unreadable } from "../process/unreadable.ts";

/** No key or token comes near it; a device would never end. */
const mostBytes = 1024 * 1024;

/**
 * A file with a token or a key, named by a flag. Warns where other users may read it. Throws `invalid_argument` where it
 * cannot be read, or is larger than any secret.
 */
export async function readSecretFile(
  flag: string,
  file: string,
  session: Pick<Session, "log" | "signal">,
): Promise<Buffer> {
  try {
    // a pipe that nobody writes to must not hold a thread, which no signal would end
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const bytes = await readAtMost(handle, mostBytes + 1, session.signal);
    if (bytes.length > mostBytes) {
      throw new RunvaultError("invalid_argument", `${flag}: the file is larger than any key or token`, {
        place: { file },
      });
    }
    const readers = otherReaders(await handle.stat());
    if (readers !== null) {
      session.log.warn({ file }, `${flag}: ${readers} can read this file; make it private with chmod 600`);
    }
    return bytes;
  } catch (cause) {
    session.signal.throwIfAborted();
    throw unreadable(file, cause, flag);
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

/** How long a pipe may take to be written to at all; once it is open at the other end, its writer may take any time. */
const mostWaits = 200;
const pipeWaitMs = 50;

/** Bytes that are there now; none at the end, and of a pipe without a writer; -1 where a writer has none yet. */
async function readNow(handle: FileHandle, buffer: Buffer, at: number): Promise<number> {
  try {
    return (await handle.read(buffer, at, buffer.length - at)).bytesRead;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return -1;
    throw error;
  }
}
