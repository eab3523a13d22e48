import { constants } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import type { Layout } from "../../archive/layout.ts";
import { syncFolder } from "../../archive/storage/fsync-files.ts";
import { permissionsAt } from "../../archive/storage/permissions.ts";
import { makeRealFolder } from "../../archive/storage/real-folder.ts";
import { RunvaultError } from "../../model/error.ts";
import { tolerated } from "../../model/make-folder.ts";
import { type BeginLine, type RecordLine, recordLineSchema } from "./job-record.ts";
import { longestLine } from "./record-lines.ts";

/** The record of a running execution. Closed without a result, it counts as one that died. */
export interface OpenRecord extends AsyncDisposable {
  readonly begin: BeginLine;
  /** Path of the record. */
  readonly file: string;
  /**
   * Appends a line, after those in progress. Once this has returned, the line survives the end of the process; the
   * result, which is the last line, also survives a power cut. Throws `storage_…` if it cannot be written; earlier
   * lines stay whole.
   */
  add(line: Exclude<RecordLine, BeginLine>): Promise<void>;
}

/** Begins an execution's record, on disk once this has returned. The caller must have the job's lock. */
export async function openRecord(layout: Layout, begin: BeginLine): Promise<OpenRecord> {
  const file = layout.recordFile(begin.job, new Date(begin.at), begin.id);
  try {
    await makeRealFolder(layout, dirname(file));
    const { file: mode } = await permissionsAt(layout, file);
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND;
    const handle = await open(file, flags | constants.O_NOFOLLOW, mode);
    const record = new RecordFile(handle, file, begin);
    try {
      await tolerated(handle.chmod(mode));
      await record.write(begin);
      await record.sync();
      return record;
    } catch (error) {
      await record[Symbol.asyncDispose]();
      // without its first line it is useless
      await rm(file, { force: true }).catch(() => {});
      throw error;
    }
  } catch (error) {
    throw RunvaultError.from(error, { place: { file } });
  }
}

/** Records that this process has open. */
const openHere = new Set<string>();

/** Whether this process is writing the record in this file. */
export function isOpenHere(file: string): boolean {
  return openHere.has(file);
}

class RecordFile implements OpenRecord {
  readonly begin: BeginLine;
  readonly file: string;
  readonly #handle: FileHandle;
  /** Bytes of the complete lines. */
  #size = 0;
  #hasResult = false;
  #last: Promise<void> = Promise.resolve();

  constructor(handle: FileHandle, file: string, begin: BeginLine) {
    this.#handle = handle;
    this.file = file;
    this.begin = begin;
    openHere.add(file);
  }

  async add(line: Exclude<RecordLine, BeginLine>): Promise<void> {
    const written = this.#last.then(async () => {
      if (this.#hasResult) throw this.#wrong("a line after the result, which must be the last");
      await this.write(line);
      if (line.kind !== "result") return;
      this.#hasResult = true;
      await this.sync();
    });
    // a failed line is reported to its own caller
    this.#last = written.catch(() => {});
    await written;
  }

  async write(line: RecordLine): Promise<void> {
    const parsed = recordLineSchema.safeParse(line);
    if (!parsed.success)
      throw this.#wrong(`a line of kind ${line.kind} is not valid: ${z.prettifyError(parsed.error)}`);
    const bytes = Buffer.from(`${JSON.stringify(parsed.data)}\n`);
    if (bytes.byteLength > longestLine) throw this.#wrong(`a line of ${bytes.byteLength} bytes`);
    try {
      await this.#handle.writeFile(bytes);
      this.#size += bytes.byteLength;
    } catch (error) {
      // otherwise the next line would continue half of this one
      await this.#handle.truncate(this.#size).catch(() => {});
      throw RunvaultError.from(error, { place: { file: this.file } });
    }
  }

  async sync(): Promise<void> {
    try {
      await this.#handle.datasync();
      await syncFolder(dirname(this.file));
    } catch (error) {
      throw RunvaultError.from(error, { place: { file: this.file } });
    }
  }

  #wrong(what: string): RunvaultError {
    return new RunvaultError("internal", `the record of an execution is to get ${what}`, {
      place: { file: this.file },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#last;
    openHere.delete(this.file);
    await this.#handle.close();
  }
}
