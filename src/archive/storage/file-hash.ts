import { createHash } from "node:crypto";
import { type OpenedFile, openRegularFile } from "./archive-file.ts";
import type { Store } from "./store.ts";

export interface HashedFile {
  readonly sha256: string;
  readonly storedBytes: number;
}

/** SHA-256 as hex and size of a file that this job has just written. */
export async function hashFile(file: string): Promise<HashedFile> {
  return await hashOpened(await openRegularFile(file, Number.MAX_SAFE_INTEGER), undefined);
}

/**
 * The same for an object, reading at most `most` bytes. Throws the signal's reason once it aborts, and ENOENT if there
 * is none.
 */
export async function hashObject(
  store: Store,
  key: string,
  most: number,
  signal?: AbortSignal,
): Promise<HashedFile> {
  return await hashOpened(await openRegularFile(await store.localFile(key), most), signal);
}

/** Reads in pieces, and closes the file. */
async function hashOpened(
  { handle, size }: OpenedFile,
  signal: AbortSignal | undefined,
): Promise<HashedFile> {
  try {
    const hash = createHash("sha256");
    const piece = Buffer.allocUnsafeSlow(Math.max(1, Math.min(size, 1 << 20)));
    let read = 0;
    while (read < size) {
      signal?.throwIfAborted();
      const { bytesRead } = await handle.read(piece, 0, Math.min(piece.byteLength, size - read), read);
      // truncated since it was opened
      if (bytesRead === 0) break;
      hash.update(piece.subarray(0, bytesRead));
      read += bytesRead;
    }
    return { sha256: hash.digest("hex"), storedBytes: read };
  } finally {
    await handle.close();
  }
}
