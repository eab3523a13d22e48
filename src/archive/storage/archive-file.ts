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
 * Most bytes of the files that no manifest gives a size of, and of documents, whose manifest may have been written by
 * anybody: larger ones are none of ours, and are not read.
 */
export const mostBytes = {
  /** A thousand million rows make 16 MB of one. */
  manifest: 256 * mib,
  archive: 4 * mib,
  /** 16 MiB are taken from a gateway; as JSON, what comes over RPC is some times as much. */
  document: 128 * mib,
  sources: 64 * mib,
  journal: 256 * mib,
  job: 256 * mib,
  /** A line of 200 bytes for each of five million runs. */
  record: 1024 * mib,
  /** Some 100,000 files of one run. */
  cache: 16 * mib,
} as const;

/** A file that is open for reading; whoever opened it closes it. */
export interface OpenedFile {
  readonly handle: FileHandle;
  /** Its real size in bytes, which is within what was allowed. */
  readonly size: number;
}

/**
 * Opens a file of an archive for reading: the only way in which one is opened. What is not a regular file below real
 * folders of the archive is never read: no symbolic link, whatever it points to, no FIFO, which would be waited for
 * without end, no device, socket or folder. Throws `archive_damaged` for these, for a folder on the path that is a link, and
 * for more than `most` bytes; ENOENT as the system does.
 */
export async function openArchiveFile(layout: Layout, file: string, most: number): Promise<OpenedFile> {
  await requireRealFolder(layout, dirname(file));
  return await openRegularFile(file, most);
}

/** The same for a path whose folders were looked at before. */
export async function openRegularFile(file: string, most: number): Promise<OpenedFile> {
  let handle: FileHandle;
  try {
    handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isMissing(error)) throw error;
    // links and sockets cannot be opened so, and the system's words do not say that it is one
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

/** The bytes of a file that is open, or those of a span; closes it. Fewer where it is cut meanwhile. */
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
      // cut since it was opened
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

/** The text of a file of an archive; null where there is none. Throws as `openArchiveFile`. */
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
