import type { EventEmitter } from "node:events";
import { type FileHandle, open } from "node:fs/promises";
import { RunvaultError } from "../../model/error.ts";
import { privateFile } from "../../model/make-folder.ts";
import { countLines } from "../../row/wire/row-lines.ts";
import { atMostEvery } from "../../serve/monitoring/at-most-every.ts";
import { unwritable } from "./unwritable.ts";

export interface LogFileOptions {
  /** Called at most once a minute with why lines cannot be written, and with how many are lost once that is certain. */
  readonly onError: (error: RunvaultError) => void;
  /** Most bytes of waiting lines; further lines are lost. Default: 16 MiB. */
  readonly mostWaitingBytes?: number;
}

const usualWaitingBytes = 16 * 1024 * 1024;
/** Pause between attempts to write. */
const retryMs = 1000;
const failureToldMs = 60_000;

/**
 * A file of lines that survives a full disk. Lines that cannot be written wait and are tried again every second, on
 * whatever file has the name by then. Callers never wait and never fail, because the work matters more than its log.
 */
export class LogFile implements AsyncDisposable {
  readonly #file: string;
  readonly #onError: (error: RunvaultError) => void;
  readonly #mostWaitingBytes: number;
  readonly #tellFailure: () => void;
  #handle: FileHandle | undefined;
  #failure: unknown;
  #retry: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  readonly #lines: Buffer[] = [];
  /** The lines being written, from the first unwritten byte. */
  #batch: Buffer = Buffer.alloc(0);
  #waitingBytes = 0;
  #lost = 0;
  /** Whether the file may have been renamed since it was opened. */
  #isRenamed = false;

  private constructor(file: string, handle: FileHandle, options: LogFileOptions) {
    this.#file = file;
    this.#handle = handle;
    this.#onError = options.onError;
    this.#mostWaitingBytes = options.mostWaitingBytes ?? usualWaitingBytes;
    this.#tellFailure = atMostEvery(failureToldMs, () => {
      const { code } = RunvaultError.from(this.#failure);
      const message = "the file cannot be written: lines are kept until it can";
      this.#onError(new RunvaultError(code, message, { place: { file }, cause: this.#failure }));
    });
  }

  /** Opens a file to append lines to. Throws if it cannot be opened. */
  static async open(file: string, options: LogFileOptions): Promise<LogFile> {
    try {
      return new LogFile(file, await open(file, "a", privateFile), options);
    } catch (error) {
      throw unwritable(file, error);
    }
  }

  write(line: string): void {
    const bytes = Buffer.from(`${line}\n`);
    if (this.#waitingBytes + bytes.length > this.#mostWaitingBytes) {
      this.#lost += 1;
      return;
    }
    this.#lines.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#retry === undefined) this.#writing ??= this.#writeWaiting();
  }

  /** Continues in the file that has the name now, creating it if needed: log rotation has renamed the old one. */
  reopen(): void {
    this.#isRenamed = true;
    if (this.#retry === undefined) this.#writing ??= this.#writeWaiting();
  }

  async #writeWaiting(): Promise<void> {
    try {
      for (;;) {
        // a line ends in the file in which it began
        if (this.#isRenamed && this.#batch.length === 0) {
          this.#isRenamed = false;
          const former = this.#handle;
          this.#handle = undefined;
          await former?.close();
        }
        this.#handle ??= await open(this.#file, "a", privateFile);
        if (this.#waitingBytes === 0) break;
        if (this.#batch.length === 0) this.#batch = Buffer.concat(this.#lines.splice(0));
        // a full disk may take only part of it: continuing there keeps the line whole
        const { bytesWritten } = await this.#handle.write(this.#batch);
        this.#batch = this.#batch.subarray(bytesWritten);
        this.#waitingBytes -= bytesWritten;
      }
      this.#tellLost();
    } catch (error) {
      await this.#giveUpFor(error);
    } finally {
      // in the same turn in which nothing waits any more, or a line that comes meanwhile would be stuck
      this.#writing = undefined;
    }
  }

  async #giveUpFor(error: unknown): Promise<void> {
    this.#failure = error;
    this.#tellFailure();
    // after a failed write, closing fails too and adds nothing
    await this.#handle?.close().catch(() => {});
    this.#handle = undefined;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#writing ??= this.#writeWaiting();
    }, retryMs).unref();
  }

  #tellLost(): void {
    const lost = this.#lost;
    const cause = this.#failure;
    this.#lost = 0;
    this.#failure = undefined;
    if (lost === 0) return;
    const message = `${lost === 1 ? "1 line is" : `${lost} lines are`} lost: they could not be written in time`;
    this.#onError(new RunvaultError("storage_failed", message, { place: { file: this.#file }, cause }));
  }

  /** Reopens it at each SIGHUP until disposed. */
  reopenOn(signals: Pick<EventEmitter, "on" | "off">): Disposable {
    const onHangup = () => this.reopen();
    signals.on("SIGHUP", onHangup);
    return { [Symbol.dispose]: () => void signals.off("SIGHUP", onHangup) };
  }

  /** Tries to write waiting lines one last time. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing;
    clearTimeout(this.#retry);
    if (this.#waitingBytes > 0) {
      this.#writing = this.#writeWaiting();
      await this.#writing;
      clearTimeout(this.#retry);
    }
    this.#lost += countLines(this.#batch) + this.#lines.length;
    this.#tellLost();
    try {
      await this.#handle?.close();
    } catch (error) {
      this.#onError(RunvaultError.from(error, { place: { file: this.#file } }));
    }
  }
}
