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
  /** The module that does the work, by its name in this folder; `apart-request.ts` has the messages. */
  readonly module: "query-apart";
  /** Memory limit of the whole process. */
  readonly memoryBytes: number;
  /** Receives its text for people. */
  readonly say: (text: string) => void;
}

/** A piece of work. */
export interface ApartWork {
  /** Read by `apartRequests` in the process. */
  readonly request: object;
  /** The process is killed after this time. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * How a request ended: with an answer, or because its process ended. `crash` (a signal) and `failed` (Node itself)
 * carry the last output.
 */
export type ApartEnd =
  | { readonly kind: "answer"; readonly answer: unknown }
  | { readonly kind: "timeout" | "memory" }
  | { readonly kind: "crash"; readonly by: string; readonly last: string }
  | { readonly kind: "failed"; readonly status: number; readonly last: string };

/** Dispose it: until then its process waits for more work. */
export interface Apart extends AsyncDisposable {
  /**
   * Has the process do a piece of work, one at a time; starts a new process if the last one is gone. Once aborted,
   * throws the signal's reason after the process has ended.
   */
  ask(work: ApartWork): Promise<ApartEnd>;
}

export type OpenApart = (options: ApartOptions) => Apart;

/** Output of crashing native code beyond this says nothing useful. */
const mostLastWords = 8192;

/** How long a process may take to leave when asked, in milliseconds. */
const leavingMs = 2_000;

/**
 * Starts a process that may be killed at any time. It has standard output for its results, a temporary folder that is
 * removed with it, and a memory limit.
 */
export const openApart: OpenApart = (options) => {
  let running: Promise<ApartProcess> | null = null;
  const start = () => {
    const started = ApartProcess.start(options);
    running = started;
    const over = () => {
      if (running === started) running = null;
    };
    // the next request reports it
    started.then(({ ended }) => ended.then(over), over);
    return started;
  };
  void start();
  return {
    ask: async (work) => await (await (running ?? start())).ask(work),
    [Symbol.asyncDispose]: async () => await (await running?.catch(() => null))?.leave(),
  };
};

/** How a process ended; `stopped` says why it was killed. */
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
  /** Resolves when the process and its temporary folder are gone. */
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

  /** Asks the process to end, and waits for it. */
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
    // Ctrl-C in a terminal also reaches the child, which may see it first
    if (by === "SIGINT" || by === "SIGTERM") {
      await setImmediate();
      throw stoppedBy(by, signal);
    }
    if (status === null) return { kind: "crash", by: by ?? "no signal", last: this.#last };
    return { kind: "failed", status, last: this.#last };
  }
}

/** Waits for this process's own signal handler, which runs at about the same time. */
function stoppedBy(by: NodeJS.Signals, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  return new RunvaultError("interrupted", `stopped by ${by}`, {
    status: by === "SIGTERM" ? exit.terminated : exit.interrupted,
  });
}

/**
 * Starts a process with an allocation limit, set by a shell because Node cannot. If the system ignores the limit or
 * there is no shell, `watchResident` checks the memory in use. The process stays in this process group, for the shell's
 * job control.
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
    // by default, glibc reserves an arena for every thread
    env: { ...process.env, TMPDIR: temporary, MALLOC_ARENA_MAX: "2" },
  });
}

const shell = "/bin/sh";
