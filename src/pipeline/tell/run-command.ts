import { type ChildProcess, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { RunvaultError } from "../../model/error.ts";

/** Of what a command prints this much is kept for the log. */
const mostOfOutput = 4096;

/** How long output is waited for that a process which the command left behind may hold open. */
const longestDrainMs = 500;

/** How a command ended. */
export interface CommandEnd {
  /** What it printed, of either stream, cut. */
  readonly output: string;
  /** Why it did not do what it is for; null where it did. */
  readonly error: RunvaultError | null;
}

/**
 * Runs a program without a shell, in a process group of its own, with a text on standard input; a program that does not
 * read it is as good as one that does. When `signal` aborts, the whole group is killed, for a program may wait for others.
 */
export async function runCommand(
  [program = "", ...args]: readonly string[],
  input: string,
  signal: AbortSignal,
): Promise<CommandEnd> {
  signal.throwIfAborted();
  const { promise: ended, resolve } = Promise.withResolvers<RunvaultError | null>();
  const child = spawnGroup(program, args);
  if (child instanceof RunvaultError) return { output: "", error: child };
  const kept = [keepStart(child.stdout), keepStart(child.stderr)];
  child.once("error", (error) => resolve(notStarted(error)));
  const closeStreams = () => {
    for (const stream of child.stdio) stream?.destroy();
  };
  // its own end counts: what it left behind may hold its output open for as long as it likes
  let draining: NodeJS.Timeout | undefined;
  child.once("exit", (status, by) => {
    draining = setTimeout(() => resolve(endOf(status, by)), longestDrainMs);
  });
  child.once("close", (status, by) => resolve(endOf(status, by)));
  const onAbort = () => {
    killGroup(child);
    resolve(RunvaultError.from(signal.reason));
  };
  signal.addEventListener("abort", onAbort, { once: true });
  child.stdin?.on("error", () => {});
  child.stdin?.end(input);
  try {
    const error = await ended;
    return { output: kept.map((text) => text()).join(""), error };
  } finally {
    clearTimeout(draining);
    closeStreams();
    signal.removeEventListener("abort", onAbort);
  }
}

function spawnGroup(program: string, args: readonly string[]): ChildProcess | RunvaultError {
  try {
    return spawn(program, args, { detached: true, shell: false, stdio: ["pipe", "pipe", "pipe"] });
  } catch (error) {
    // an argument with a null character, or more of them than the system takes
    return notStarted(error);
  }
}

/** Keeps the beginning of what a stream gives, and lets the rest go by. */
function keepStart(stream: Readable | null): () => string {
  const parts: Buffer[] = [];
  let bytes = 0;
  stream?.on("error", () => {});
  stream?.on("data", (chunk: Buffer) => {
    if (bytes < mostOfOutput) parts.push(chunk.subarray(0, mostOfOutput - bytes));
    bytes += chunk.length;
  });
  return () => {
    const text = Buffer.concat(parts).toString("utf8").trimEnd();
    return bytes > mostOfOutput ? `${text}… (${bytes} bytes)\n` : text && `${text}\n`;
  };
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // all of it ended meanwhile
  }
}

function endOf(status: number | null, by: NodeJS.Signals | null): RunvaultError | null {
  if (status === 0) return null;
  const how = by === null ? `ended with status ${status}` : `was ended by ${by}`;
  // worth another attempt, as an answer of 500 is
  return new RunvaultError("server_error", `the command ${how}`, {
    hint: "What it printed is in the log; `runvault check FILE --test-notify` runs it again.",
  });
}

function notStarted(thrown: unknown): RunvaultError {
  const code = String((thrown as NodeJS.ErrnoException).code ?? "");
  const why =
    code === "ENOENT"
      ? "was not found"
      : code === "EACCES"
        ? "may not be run"
        : `could not be started (${code})`;
  return new RunvaultError("invalid_argument", `the command ${why}`, {
    hint: "Check notify.command: a program with a / in its name is looked for from the job file's folder on, others in PATH.",
  });
}
