import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { extname } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { exit, RunvaultError } from "../../model/error.ts";
import { packageFile } from "../../model/package-file.ts";
import { timerMs } from "../../model/retry/deadline.ts";
import { makeTemporaryFolder } from "../../model/temporary-folder.ts";
import type { ApartMessage, ApartRequest } from "./apart-request.ts";
import { watchResident } from "./watch-resident.ts";

/** A process for work that may have to be killed. */
export interface ApartOptions {
  /** The module that does the work, by its name in this folder; see `apart-request.ts` for what it is given. */
  readonly module: "query-apart";
  /** Memory that the process may take, all of it counted. */
  readonly memoryBytes: number;
  /** Takes what it says for people. */
  readonly say: (text: string) => void;
}

/** A piece of work. */
export interface ApartWork {
  /** Read there by `apartRequests`. */
  readonly request: object;
  /** When the process is killed. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * How a piece of work came to its end: with an answer, or with the process's, which was brought about or not. `crash`, by a
 * signal, and `failed`, by Node itself, have the last that it said.
 */
export type ApartEnd =
  | { readonly kind: "answer"; readonly answer: unknown }
  | { readonly kind: "timeout" | "memory" }
  | { readonly kind: "crash"; readonly by: string; readonly last: string }
  | { readonly kind: "failed"; readonly status: number; readonly last: string };

/** Dispose it: until then its process waits for more work. */
export interface Apart extends AsyncDisposable {
  /**
   * Has the process do a piece of work; one at a time. A process that is gone is replaced by a new one. Throws the signal's
   * reason once it is gone.
   */
  ask(work: ApartWork): Promise<ApartEnd>;
}

export type OpenApart = (options: ApartOptions) => Apart;

/** Native code that goes on after this was never going to say why. */
const mostLastWords = 8192;

/** How long a process may take to leave when it is told to, in milliseconds. */
const leavingMs = 2_000;

/**
 * Starts a process that may be killed at any time: it has standard output for its results, a temporary folder that goes
 * with it, and a limit on its memory.
 */
export const openApart: OpenApart = (options) => {
  let running: Promise<ApartProcess> | null = null;
  const start = () => {
    const started = ApartProcess.start(options);
    running = started;
    const over = () => {
      if (running === started) running = null;
    };
    // whoever asks for work next hears of it
    started.then(({ ended }) => ended.then(over), over);
    return started;
  };
  void start();
  return {
    ask: async (work) => await (await (running ?? start())).ask(work),
    [Symbol.asyncDispose]: async () => await (await running?.catch(() => null))?.leave(),
  };
};

/** How a process ended; `stopped` is why it was killed. */
interface ProcessEnd {
  readonly status: number | null;
  readonly by: NodeJS.Signals | null;
  readonly stopped: "timeout" | "memory" | null;
  readonly error: Error | null;
}

class ApartProcess {
  readonly #child: ChildProcess;
  #stopped: ProcessEnd["stopped"] = null;
  #last = "";
  #onAnswer: (answer: unknown) => void = () => {};
  /** Once it is gone, and its temporary folder with it. */
  readonly ended: Promise<ProcessEnd>;

  static async start(options: ApartOptions): Promise<ApartProcess> {
    return new ApartProcess(await makeTemporaryFolder("query"), options);
  }

  private constructor(temporary: string, { module, memoryBytes, say }: ApartOptions) {
    const child = spawnLimited(module, memoryBytes, temporary);
    this.#child = child;
    const watch = watchResident(child, memoryBytes, () => this.#stop("memory"));
    const [stdin, , stderr, messages, said] = child.stdio as unknown as [
      Writable,
      null,
      Readable,
      Readable,
      Writable,
    ];
    // a child that is gone before it has read its request is told by its end; and by the end of this pipe, the child of ours
    stdin.on("error", () => {});
    said.on("error", () => {});
    stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#last = (this.#last + text).slice(-mostLastWords);
    });
    createInterface({ input: messages }).on("line", (line) => {
      const message = JSON.parse(line) as ApartMessage;
      if ("answer" in message) return void this.#onAnswer(message.answer);
      say(message.say);
      said.write(".");
    });
    const gone = new Promise<Omit<ProcessEnd, "stopped">>((resolve) => {
      child.on("error", (error) => resolve({ status: null, by: null, error }));
      child.on("close", (status, by) => resolve({ status, by, error: null }));
    });
    this.ended = gone.then(async (end) => {
      watch[Symbol.dispose]();
      await rm(temporary, { recursive: true, force: true });
      return { ...end, stopped: this.#stopped };
    });
  }

  async ask({ request, timeoutMs, signal }: ApartWork): Promise<ApartEnd> {
    const kill = () => this.#child.kill("SIGKILL");
    const answered = new Promise<ApartEnd>((resolve) => {
      this.#onAnswer = (answer) => resolve({ kind: "answer", answer });
    });
    const deadline = setTimeout(() => this.#stop("timeout"), timerMs(timeoutMs));
    signal.addEventListener("abort", kill, { once: true });
    try {
      if (signal.aborted) kill();
      this.#send({ request });
      const end = await Promise.race([answered, this.ended.then((gone) => this.#endOf(gone, signal))]);
      if (!signal.aborted) return end;
      await this.ended;
      throw signal.reason;
    } finally {
      clearTimeout(deadline);
      signal.removeEventListener("abort", kill);
    }
  }

  /** Has the process end by itself, and waits until it has. */
  async leave(): Promise<void> {
    const deadline = setTimeout(() => this.#child.kill("SIGKILL"), leavingMs);
    (this.#child.stdin as Writable).write("\n");
    await this.ended;
    clearTimeout(deadline);
  }

  #send(sent: ApartRequest): void {
    (this.#child.stdin as Writable).write(`${JSON.stringify(sent)}\n`);
  }

  #stop(why: "timeout" | "memory"): void {
    this.#stopped ??= why;
    this.#child.kill("SIGKILL");
  }

  async #endOf({ status, by, stopped, error }: ProcessEnd, signal: AbortSignal): Promise<ApartEnd> {
    if (error !== null) throw RunvaultError.from(error);
    if (stopped !== null) return { kind: stopped };
    // a terminal's Ctrl-C reaches the child, too, and may be seen there first
    if (by === "SIGINT" || by === "SIGTERM") {
      await setImmediate();
      throw stoppedBy(by, signal);
    }
    if (status === null) return { kind: "crash", by: by ?? "no signal", last: this.#last };
    return { kind: "failed", status, last: this.#last };
  }
}

/** Waits for the handler of this process's own signal, which comes at about the same time. */
function stoppedBy(by: NodeJS.Signals, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  return new RunvaultError("interrupted", `stopped by ${by}`, {
    status: by === "SIGTERM" ? exit.terminated : exit.interrupted,
  });
}

/**
 * A process with a limit on what it allocates, which a shell sets: Node cannot. Where the system does not keep to it, or
 * there is no shell, `watchResident` looks at what it holds. Not a group of its own, so that a shell's job control has it.
 */
function spawnLimited(module: string, memoryBytes: number, temporary: string): ChildProcess {
  const built = extname(import.meta.filename) === ".js";
  const script = packageFile(built ? `dist/cli/apart/${module}.js` : `src/cli/apart/${module}.ts`);
  // room for what is loaded at the start: less would be collected meanwhile, or once nothing else is to do
  const own = [
    process.execPath,
    ...process.execArgv,
    "--min-semi-space-size=24",
    fileURLToPath(script),
    temporary,
  ];
  // a limit that is lower already, and may not be raised, stays
  const limited = [
    "-c",
    'ulimit -d "$0" 2>/dev/null; exec "$@"',
    String(Math.ceil(memoryBytes / 1024)),
    ...own,
  ];
  const [program, args] = existsSync(shell) ? [shell, limited] : [own[0]!, own.slice(1)];
  return spawn(program, args, {
    stdio: ["pipe", "inherit", "pipe", "pipe", "pipe"],
    // every thread of glibc would reserve an arena of its own
    env: { ...process.env, TMPDIR: temporary, MALLOC_ARENA_MAX: "2" },
  });
}

const shell = "/bin/sh";
