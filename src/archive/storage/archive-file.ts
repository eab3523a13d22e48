import { constants, type Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import { byteText } from "../../model/text/byte-text.ts";
import type { Layout } from "../layout.ts";
import { isMissing } from "./fsync-files.ts";
import { misplaced, requireRealFile, requireRealFolder } from "./real-folder.ts";

const mib = 1024 * 1024;

/**
 * Most bytes of files whose size no manifest gives, and of documents, whose manifest may be forged: larger ones are not
 * ours and are not read.
 */
export const mostBytes = {
  /** One for a thousand million rows has 16 MB. */
  manifest: 256 * mib,
  archive: 4 * mib,
  /** At most 16 MiB come from a gateway; RPC documents grow several times as JSON. */
  document: 128 * mib,
  sources: 64 * mib,
  journal: 256 * mib,
  job: 256 * mib,
  /** A line of 200 bytes for each of five million runs. */
  record: 1024 * mib,
  /** Some 100,000 files of one run. */
  cache: 16 * mib,
} as const;

/** A file open for reading; the opener closes it. */
export interface OpenedFile {
  readonly handle: FileHandle;
  /** Its real size in bytes, within the limit. */
  readonly size: number;
}

/**
 * Opens a file of an archive for reading; the only way to do so. Nothing but regular files below real folders is ever
 * read: no symbolic links, no FIFOs, which would block, no devices, sockets or folders. Throws `archive_damaged` for
 * those, for a linked folder in the path, and for more than `most` bytes; ENOENT as the system does.
 */
export async function openArchiveFile(layout: Layout, file: string, most: number): Promise<OpenedFile> {
  await requireRealFolder(layout, dirname(file));
  return await openRegularFile(file, most);
}

/** The same for a path whose folders were already checked. */
export async function openRegularFile(file: string, most: number): Promise<OpenedFile> {
  let handle: FileHandle;
  try {
    handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isMissing(error)) throw error;
    // opening links and sockets fails, but the system's error does not say what they are
    await requireRealFile(file);
    throw RunvaultError.from(error, { place: { file } });
  }
  try {
    const found = await handle.stat();
    if (!found.isFile()) throw misplaced(file, found, "file");
    if (found.size > most) throw tooLarge(file, found, most);
    return { handle, size: found.size };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** The bytes of a file of an archive. Throws as `openArchiveFile`. */
export async function readArchiveFile(layout: Layout, file: string, most: number): Promise<Buffer> {
  return await readOpened(await openArchiveFile(layout, file, most), file);
}

/** The bytes of an open file, or of a part; closes it. Fewer if it is truncated meanwhile. */
export async function readOpened(
  { handle, size }: OpenedFile,
  file: string,
  span?: { readonly start: number; readonly end: number },
): Promise<Buffer> {
  try {
    const start = Math.min(span?.start ?? 0, size);
    const bytes = Buffer.allocUnsafeSlow(Math.max(0, Math.min(span?.end ?? size, size) - start));
    let read = 0;
    while (read < bytes.byteLength) {
      const { bytesRead } = await handle.read(bytes, read, bytes.byteLength - read, start + read);
      // truncated since it was opened
      if (bytesRead === 0) break;
      read += bytesRead;
    }
    return bytes.subarray(0, read);
  } catch (error) {
    throw RunvaultError.from(error, { place: { file } });
  } finally {
    await handle.close();
  }
}

/** The text of a file of an archive; null if there is none. Throws as `openArchiveFile`. */
export async function readArchiveText(layout: Layout, file: string, most: number): Promise<string | null> {
  try {
    return (await readArchiveFile(layout, file, most)).toString("utf8");
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

function tooLarge(file: string, { size }: Stats, most: number): RunvaultError {
  return new RunvaultError(
    "archive_damaged",
    `this file has ${size} bytes, more than the ${byteText(most)} allowed here`,
    { place: { file } },
  );
}
