import { isTextFormat } from "../../analytics/render/format.ts";
import { exit, RunvaultError } from "../../model/error.ts";
import { grouped } from "../../model/text/number-text.ts";
import { plural } from "../../model/text/plural.ts";
import type { StatementRunner } from "../apart/statement-runner.ts";
import { wrapLines } from "../output/wrap-lines.ts";
import type { Session } from "../process/session.ts";
import { writtenText } from "../process/written-text.ts";
import { formOf, isShellCommand, runShellCommand, type ShellState } from "./shell-commands.ts";
import { readSqlFile, type SqlText } from "./sql-text.ts";
import { StatementReader } from "./statement-reader.ts";

/** Most levels of nested files; a file that reads itself would never end. */
const deepestRead = 8;

/** Processes a shell's lines, from any source. */
export class ShellSession {
  readonly #session: Session;
  readonly #runner: StatementRunner;
  readonly #goesOn: boolean;
  readonly #state: ShellState;
  #running: AbortController | null = null;
  #hasQuit = false;

  /** `goesOn`: errors do not end the shell, as for a person who types. */
  constructor(runner: StatementRunner, session: Session, state: ShellState, goesOn: boolean) {
    this.#runner = runner;
    this.#session = session;
    this.#state = state;
    this.#goesOn = goesOn;
  }

  /** Whether a command asked to leave. */
  get hasQuit(): boolean {
    return this.#hasQuit;
  }

  /** Stops the current statement; false if there is none. */
  cancel(): boolean {
    this.#running?.abort();
    return this.#running !== null;
  }

  /**
   * Runs the statements that a line ends. Returns the first error status and stops there, unless the shell goes on
   * after errors.
   */
  async line(text: string, reader: StatementReader, file: string | null = null, depth = 0): Promise<number> {
    try {
      if (reader.isWithin || !isShellCommand(text)) return await this.#runAll(reader.add(text));
      reader.skip();
      const action = runShellCommand(text, this.#state);
      if (action.kind === "quit") this.#hasQuit = true;
      if (action.kind === "say") {
        await this.#session.print(wrapLines(action.text, this.#session.terminal.columns));
      }
      if (action.kind === "sql") return await this.#run({ text: action.text, file, line: 1 });
      if (action.kind === "read") return await this.#read(action.file, depth + 1);
      return exit.done;
    } catch (error) {
      this.#session.signal.throwIfAborted();
      return this.#session.failure(error);
    }
  }

  /** Runs the last, unterminated statement. */
  async end(reader: StatementReader): Promise<number> {
    return await this.#runAll(reader.end());
  }

  async #runAll(statements: readonly SqlText[]): Promise<number> {
    for (const sql of statements) {
      const status = await this.#run(sql);
      if (status !== exit.done && !this.#goesOn) return status;
    }
    return exit.done;
  }

  async #read(file: string, depth: number): Promise<number> {
    const { signal } = this.#session;
    if (depth > deepestRead) {
      throw new RunvaultError("invalid_argument", ".read is nested too deeply", { place: { file } });
    }
    const { text } = await readSqlFile(file, signal);
    const reader = new StatementReader(file);
    for (const line of text.split("\n")) {
      const status = await this.line(line.replace(/\r$/, ""), reader, file, depth);
      if ((status !== exit.done && !this.#goesOn) || this.#hasQuit) return status;
    }
    return await this.end(reader);
  }

  async #run(sql: SqlText): Promise<number> {
    const { signal, terminal } = this.#session;
    const { out, timing } = this.#state;
    const format = formOf(this.#state);
    // a file gets one answer
    this.#state.out = null;
    const running = new AbortController();
    this.#running = running;
    const started = performance.now();
    try {
      if (out === null && !isTextFormat(format) && terminal.stdoutIsTerminal) {
        throw new RunvaultError("invalid_argument", `${format} is binary and cannot be shown on a terminal`, {
          hint: "Write the answer to a file with .output FILE, or choose another .format.",
        });
      }
      const either = AbortSignal.any([signal, running.signal]);
      const { status, rows, written } = await this.#runner.run(sql, { format, out }, either);
      if (written !== null) this.#session.note(writtenText({ ...written, rows: rows ?? 0 }, false));
      if (timing && rows !== null) this.#session.note(timingText(rows, performance.now() - started));
      return status;
    } catch (error) {
      signal.throwIfAborted();
      if (!running.signal.aborted) return this.#session.failure(error);
      this.#session.note("stopped");
      return exit.interrupted;
    } finally {
      this.#running = null;
    }
  }
}

function timingText(rows: number, ms: number): string {
  const time = ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(2)} s`;
  return `(${grouped(rows)} ${plural(rows, "row")}, ${time})`;
}
