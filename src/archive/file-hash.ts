import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";

/** SHA-256 of a file as hex, and its size in bytes; read in pieces. Throws the signal's reason once it aborts. */
export async function hashFile(
  file: string,
  signal?: AbortSignal,
): Promise<{ sha256: string; storedBytes: number }> {
  const hash = createHash("sha256");
  const stream = createReadStream(file, { highWaterMark: 1 << 20 });
  try {
    await pipeline(stream, hash, { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
  return { sha256: hash.digest("hex"), storedBytes: stream.bytesRead };
}
