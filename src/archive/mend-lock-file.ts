import { constants } from "node:fs";
import { open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { literal } from "../duckdb/sql.ts";
import { makeTemporaryFolder } from "../model/temporary-folder.ts";
import { isMissing } from "./storage/fsync-files.ts";

/**
 * Completes a lock file that a full disk or a power cut left truncated. It is written in place: the kernel's lock is on
 * the file, not its name, so the process that is creating or has taken it keeps it, and nobody gets another one. A foreign file
 * there is left alone.
 */
export async function mendLockFile(file: string): Promise<void> {
  try {
    await using handle = await open(file, constants.O_RDWR | constants.O_NOFOLLOW);
    const { bytesRead, buffer } = await handle.read({ buffer: Buffer.alloc(wholeBytes + 1), position: 0 });
    if (!isCutOff(buffer.subarray(0, bytesRead))) return;
    await handle.writeFile(await emptyDatabase());
  } catch (error) {
    // removed with its lock, which is free again
    if (!isMissing(error)) throw error;
  }
}

/** A database without tables: three headers. */
const wholeBytes = 3 * 4096;

/** Zeros were never written; DuckDB's mark comes after the first header's checksum. */
function isCutOff(bytes: Buffer): boolean {
  if (bytes.every((byte) => byte === 0)) return bytes.length <= wholeBytes;
  return bytes.length < wholeBytes && bytes.toString("latin1", 8, 12) === "DUCK";
}

/** The bytes of such a database, created where there is room. */
async function emptyDatabase(): Promise<Buffer> {
  const folder = await makeTemporaryFolder("lock");
  try {
    const file = join(folder, "empty.duckdb");
    // loaded only to repair a file: commands that read lists do not need DuckDB
    const { openDuckDB } = await import("../duckdb/open-duckdb.ts");
    await using duckdb = await openDuckDB({ threads: 1 });
    await duckdb.connection.run(`ATTACH ${literal(file)} AS empty (TYPE duckdb)`);
    await duckdb.connection.run("DETACH empty");
    return await readFile(file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
