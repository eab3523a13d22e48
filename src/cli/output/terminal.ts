import type { EventEmitter } from "node:events";
import type { Readable, Writable } from "node:stream";
import { RunvaultError } from "../../model/error.ts";
import { type OpenApart, openApart } from "../apart/run-apart.ts";

/** What a command line sees of the world: its streams, its environment, and the signals that it gets. */
export interface Terminal {
  /** For what is no option: options read the process's own environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stderrIsTerminal: boolean;
  /**
   * Writes data to standard output and waits until there is room for more. False when the reader is gone (`| head`):
   * then nothing more needs to be written. Throws a storage error when the output is a file that cannot grow.
   */
  out(data: string | Uint8Array): Promise<boolean>;
  readonly stdoutIsTerminal: boolean;
  /** Characters a line of standard output; null where it is no terminal, or one that does not say. */
  readonly columns: number | null;
  /** Whether standard output shows colours, and is to: no with NO_COLOR or TERM=dumb. */
  readonly hasColours: boolean;
  readonly stdin: Readable;
  readonly stdinIsTerminal: boolean;
  /** Writes to standard error, now. What cannot be written there is lost: there is nowhere else to say so. */
  err(text: string): void;
  /** The stream behind `err`, for a progress bar that moves its cursor. */
  readonly stderr: NodeJS.WritableStream;
  /** Emits the signals that the process gets, such as `SIGINT`, by their names. */
  readonly signals: Pick<EventEmitter, "on" | "off">;
  /** Ends the process by a signal that nobody listens to, which waits for nothing. */
  endBy(signal: NodeJS.Signals): void;
  /** Starts a process of its own for work; null where the command line is to do all of it itself. */
  readonly openApart: OpenApart | null;
}

/** The process's own terminal. */
export function processTerminal(): Terminal {
  const { stdout, stderr, env } = process;
  const output = new Output(stdout);
  stderr.on("error", () => {});
  // what native threads still do is waited for after this, where no listener is called any more
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
    // without a listener a reader that leaves would end the process with a stack trace; write() tells the caller
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
