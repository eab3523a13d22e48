import { constants } from "node:fs";
import { open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { literal } from "../duckdb/sql.ts";
import { makeTemporaryFolder } from "../model/temporary-folder.ts";
import { isMissing } from "./storage/fsync-files.ts";

/**
 * Makes a lock's file whole that a full disk or a loss of power cut off while it was made. It is written where it is: the
 * kernel's lock is on the file, and not on its name, so that who makes it just now, or has taken it meanwhile, keeps it, and
 * nobody ever has another in its place. What anybody else put there stays.
 */
export async function mendLockFile(file: string): Promise<void> {
  try {
    await using handle = await open(file, constants.O_RDWR | constants.O_NOFOLLOW);
    const { bytesRead, buffer } = await handle.read({ buffer: Buffer.alloc(wholeBytes + 1), position: 0 });
    if (!isCutOff(buffer.subarray(0, bytesRead))) return;
    await handle.writeFile(await emptyDatabase());
  } catch (error) {
    // with its lock, which is free again
    if (!isMissing(error)) throw error;
  }
}

/** A database without tables: three headers. */
const wholeBytes = 3 * 4096;

/** Zeros are what was never written, and DuckDB's mark stands behind the checksum of the first header. */
function isCutOff(bytes: Buffer): boolean {
  if (bytes.every((byte) => byte === 0)) return bytes.length <= wholeBytes;
  return bytes.length < wholeBytes && bytes.toString("latin1", 8, 12) === "DUCK";
}

/** Such a database's bytes, from where there is room. */
async function emptyDatabase(): Promise<Buffer> {
  const folder = await makeTemporaryFolder("lock");
  try {
    const file = join(folder, "empty.duckdb");
    // only where a file is to be mended: commands that read lists do without DuckDB
    const { openDuckDB } = await import("../duckdb/open-duckdb.ts");
    await using duckdb = await openDuckDB({ threads: 1 });
    await duckdb.connection.run(`ATTACH ${literal(file)} AS empty (TYPE duckdb)`);
    await duckdb.connection.run("DETACH empty");
    return await readFile(file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
