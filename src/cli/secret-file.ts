import type { Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { RunvaultError } from "../model/error.ts";
import type { Session } from "./session.ts";

/** No key or token comes near it; a device would never end. */
const mostBytes = 1024 * 1024;

/**
 * A file with a token or a key, named by a flag. Warns where other users may read it. Throws `invalid_argument` where it
 * cannot be read, or is larger than any secret.
 */
export async function readSecretFile(
  flag: string,
  file: string,
  session: Pick<Session, "log">,
): Promise<Buffer> {
  try {
    await using handle = await open(file, "r");
    const bytes = await readAtMost(handle, mostBytes + 1);
    if (bytes.length > mostBytes) {
      throw new RunvaultError("invalid_argument", `${flag}: the file is larger than any key or token`, {
        place: { file },
      });
    }
    const readers = otherReaders(await handle.stat());
    if (readers !== null) {
      session.log.warn({ file }, `${flag}: ${readers} can read this file; make it private: chmod 600`);
    }
    return bytes;
  } catch (cause) {
    if (cause instanceof RunvaultError) throw cause;
    throw new RunvaultError("invalid_argument", `${flag}: the file cannot be read`, {
      cause,
      place: { file },
    });
  }
}

async function readAtMost(handle: FileHandle, most: number): Promise<Buffer> {
  const buffer = Buffer.alloc(most);
  let at = 0;
  while (at < most) {
    const { bytesRead } = await handle.read(buffer, at, most - at);
    if (bytesRead === 0) break;
    at += bytesRead;
  }
  return Buffer.from(buffer.subarray(0, at));
}

/**
 * Which users beside ourselves may read a file; null where none may. A group may where root owns the file: that is how
 * secrets reach a process which is not root's, in Kubernetes say.
 */
function otherReaders(stats: Stats): string | null {
  // no permissions in these bits there; a pipe has no other reader anyway
  if (process.platform === "win32" || !stats.isFile()) return null;
  if ((stats.mode & 0o004) !== 0) return "every user";
  const isFromRoot = stats.uid === 0 && process.getuid?.() !== 0;
  return (stats.mode & 0o040) !== 0 && !isFromRoot ? "a group of users" : null;
}
