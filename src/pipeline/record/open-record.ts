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

/** The record of an execution that is under way. Closed without a result it is that of one that died. */
export interface OpenRecord extends AsyncDisposable {
  readonly begin: BeginLine;
  /** Path of the record. */
  readonly file: string;
  /**
   * Appends a line, behind those that are on their way; it outlasts the process once this has returned, and the result, the
   * last line, a loss of power. Throws `storage_…` where it cannot be written: what was before it stays whole.
   */
  add(line: Exclude<RecordLine, BeginLine>): Promise<void>;
}

/** Begins the record of an execution, on disk once this has returned. By whoever has the job's lock. */
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
      // without its first line it is no record of anything
      await rm(file, { force: true }).catch(() => {});
      throw error;
    }
  } catch (error) {
    throw RunvaultError.from(error, { place: { file } });
  }
}

/** Files of the records that this process has open. */
const openHere = new Set<string>();

/** Whether the record in this file is one that this process is writing. */
export function isOpenHere(file: string): boolean {
  return openHere.has(file);
}

class RecordFile implements OpenRecord {
  readonly begin: BeginLine;
  readonly file: string;
  readonly #handle: FileHandle;
  /** Bytes of the lines that are whole. */
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
      if (this.#hasResult) throw this.#wrong("a line behind the result, which is the last");
      await this.write(line);
      if (line.kind !== "result") return;
      this.#hasResult = true;
      await this.sync();
    });
    // one that cannot be written is for its own caller to hear of
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
      // the next line would continue half of this one
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
