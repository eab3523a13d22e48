import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { extname, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { timerMs } from "../model/deadline.ts";
import { exit, RunvaultError } from "../model/error.ts";
import { makeTemporaryFolder } from "../model/temporary-folder.ts";
import type { ApartRequest } from "./apart-request.ts";
import { watchResident } from "./watch-resident.ts";

/** A piece of work for a process of its own. */
export interface ApartWork {
  /** The module that does it, by its name in this folder; see `apart-request.ts` for what it is given. */
  readonly module: "query-apart";
  /** Read there by `apartRequest`. */
  readonly request: object;
  /** Memory that the process may take, all of it counted. */
  readonly memoryBytes: number;
  /** When it is killed. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Takes what it says for people. */
  readonly say: (text: string) => void;
}

/**
 * How the process came to its end: by itself, or how it was brought about. `crash`, by a signal, and `failed`, by Node
 * itself, have the last that it said.
 */
export type ApartEnd =
  | { readonly kind: "exit"; readonly status: number }
  | { readonly kind: "timeout" | "memory" }
  | { readonly kind: "crash"; readonly by: string; readonly last: string }
  | { readonly kind: "failed"; readonly status: number; readonly last: string };

export type RunApart = (work: ApartWork) => Promise<ApartEnd>;

/** Native code that goes on after this was never going to say why. */
const mostLastWords = 8192;

/** Statuses of a process that Node ends: an error that nobody caught, as of a library that does not load, or no end at all. */
const statusesOfNode: readonly number[] = [1, 13];

/**
 * Does the work in a process that may be killed at any time: it has standard output for its result, a temporary folder
 * that goes with it, and a limit on its memory. Throws the signal's reason once it is gone.
 */
export const runApart: RunApart = async ({ module, request, memoryBytes, timeoutMs, signal, say }) => {
  const temporary = await makeTemporaryFolder("query");
  try {
    signal.throwIfAborted();
    return await new Promise<ApartEnd>((resolve, reject) => {
      let stopped: ApartEnd["kind"] | undefined;
      let last = "";
      let hasSaid = false;
      const child = spawnLimited(module, memoryBytes, temporary);
      const stop = (why: "timeout" | "memory") => {
        stopped ??= why;
        child.kill("SIGKILL");
      };
      const deadline = setTimeout(() => stop("timeout"), timerMs(timeoutMs));
      const watch = watchResident(child, memoryBytes, () => stop("memory"));
      const onAbort = () => child.kill("SIGKILL");
      signal.addEventListener("abort", onAbort, { once: true });
      const done = () => {
        clearTimeout(deadline);
        watch[Symbol.dispose]();
        signal.removeEventListener("abort", onAbort);
      };
      const [stdin, , stderr, messages] = child.stdio as unknown as [Writable, null, Readable, Readable];
      // a child that is gone before it has read its request is told by its end
      stdin.on("error", () => {});
      // left open: its end is how the child learns that this process is gone
      const asked: ApartRequest = { temporary, request };
      stdin.write(`${JSON.stringify(asked)}\n`);
      stderr.setEncoding("utf8").on("data", (text: string) => {
        last = (last + text).slice(-mostLastWords);
      });
      messages.setEncoding("utf8").on("data", (text: string) => {
        hasSaid = true;
        say(text);
      });
      child.on("error", (error) => {
        done();
        reject(RunvaultError.from(error));
      });
      child.on("close", (status, by) => {
        done();
        if (signal.aborted) return reject(signal.reason);
        if (stopped === "timeout" || stopped === "memory") return resolve({ kind: stopped });
        // a terminal's Ctrl-C reaches the child, too, and may be seen there first
        if (by === "SIGINT" || by === "SIGTERM") return setImmediate(() => reject(stoppedBy(by, signal)));
        if (status === null) return resolve({ kind: "crash", by: by ?? "no signal", last });
        // our own part of it says why it fails
        if (!hasSaid && statusesOfNode.includes(status)) return resolve({ kind: "failed", status, last });
        resolve({ kind: "exit", status });
      });
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
};

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
  const script = join(import.meta.dirname, `${module}${extname(import.meta.filename)}`);
  // room for what is loaded at the start: less would be collected three times meanwhile
  const own = [process.execPath, ...process.execArgv, "--min-semi-space-size=16", script];
  // a limit that is lower already, and may not be raised, stays
  const limited = [
    "-c",
    'ulimit -d "$0" 2>/dev/null; exec "$@"',
    String(Math.ceil(memoryBytes / 1024)),
    ...own,
  ];
  const [program, args] = existsSync(shell) ? [shell, limited] : [own[0]!, own.slice(1)];
  return spawn(program, args, {
    stdio: ["pipe", "inherit", "pipe", "pipe"],
    // every thread of glibc would reserve an arena of its own
    env: { ...process.env, TMPDIR: temporary, MALLOC_ARENA_MAX: "2" },
  });
}

const shell = "/bin/sh";
