import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";

/** SHA-256 of a file as hex, and its size in bytes; read in pieces. */
export async function hashFile(file: string): Promise<{ sha256: string; storedBytes: number }> {
  const hash = createHash("sha256");
  const stream = createReadStream(file, { highWaterMark: 1 << 20 });
  await pipeline(stream, hash);
  return { sha256: hash.digest("hex"), storedBytes: stream.bytesRead };
}
