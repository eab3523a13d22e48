import type { EventEmitter } from "node:events";
import type { Readable, Writable } from "node:stream";
import { RunvaultError } from "../../model/error.ts";
import { type OpenApart, openApart } from "../apart/run-apart.ts";

/** A command line's view of the world: its streams, environment and signals. */
export interface Terminal {
  /** For settings that are not options; options read the process's own environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stderrIsTerminal: boolean;
  /**
   * Writes data to standard output and waits until there is room for more. Returns false when the reader is gone (`|
   * head`): then nothing more needs to be written. Throws a storage error if the output is a file that cannot grow.
   */
  out(data: string | Uint8Array): Promise<boolean>;
  readonly stdoutIsTerminal: boolean;
  /** Width of standard output; null if it is not a terminal, or unknown. */
  readonly columns: number | null;
  /** Whether standard output shows colours; not with NO_COLOR or TERM=dumb. */
  readonly hasColours: boolean;
  readonly stdin: Readable;
  readonly stdinIsTerminal: boolean;
  /** Writes to standard error, now. A failure is ignored: there is nowhere else to report it. */
  err(text: string): void;
  /** The stream of `err`, for a progress bar that moves its cursor. */
  readonly stderr: NodeJS.WritableStream;
  /** Emits the process's signals, such as `SIGINT`, by name. */
  readonly signals: Pick<EventEmitter, "on" | "off">;
  /** Ends the process at once by a signal that has no listener. */
  endBy(signal: NodeJS.Signals): void;
  /** Starts a separate process for work; null if all work is to be done in this one. */
  readonly openApart: OpenApart | null;
}

/** The process's own terminal. */
export function processTerminal(): Terminal {
  const { stdout, stderr, env } = process;
  const output = new Output(stdout);
  stderr.on("error", () => {});
  // native threads are waited for after this, when listeners no longer run
  process.once("exit", () => {
    for (const signal of ["SIGINT", "SIGTERM"]) process.removeAllListeners(signal);
  });
  return {
    env,
    get stdin() {
      return process.stdin;
    },
    get stdinIsTerminal() {
      return process.stdin.isTTY === true;
    },
    stderrIsTerminal: stderr.isTTY === true && env.TERM !== "dumb",
    stdoutIsTerminal: stdout.isTTY === true,
    get columns() {
      return stdout.isTTY === true && stdout.columns > 0 ? stdout.columns : null;
    },
    hasColours: stdout.isTTY === true && stdout.hasColors(),
    out: (data) => output.write(data),
    err: (text) => {
      stderr.write(text);
    },
    stderr,
    signals: process,
    endBy: (signal) => process.kill(process.pid, signal),
    openApart,
  };
}

class Output {
  readonly #stream: Writable;
  #gone = false;

  constructor(stream: Writable) {
    this.#stream = stream;
    // without a listener, a closed reader would end the process with a stack trace; write() reports it
    stream.on("error", () => {});
  }

  async write(data: string | Uint8Array): Promise<boolean> {
    if (this.#gone) return false;
    const failure = await new Promise<Error | null | undefined>((done) => this.#stream.write(data, done));
    if (failure === null || failure === undefined) return true;
    const code = (failure as NodeJS.ErrnoException).code;
    if (code !== "EPIPE" && code !== "ERR_STREAM_DESTROYED") {
      throw RunvaultError.from(failure, {
        place: { file: "standard output" },
        hint: "The output could not be written: send it elsewhere, and run the same command again.",
      });
    }
    this.#gone = true;
    return false;
  }
}
