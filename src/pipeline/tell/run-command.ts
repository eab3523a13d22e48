import { type ChildProcess, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { RunvaultError } from "../../model/error.ts";

/** Most output of a command that is logged. */
const mostOfOutput = 4096;

/** How long to wait for output that a leftover process may hold open. */
const longestDrainMs = 500;

/** How a command ended. */
export interface CommandEnd {
  /** The beginning of its output, from both streams. */
  readonly output: string;
  /** Why it failed; null if it did not. */
  readonly error: RunvaultError | null;
}

/**
 * Runs a program without a shell, in its own process group, with a text on standard input that it need not read. When
 * `signal` aborts, the whole group is killed, because a program may wait for others.
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
  // its own exit counts: a leftover process may hold its output open for any time
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
    // an argument with a null character, or too many for the system
    return notStarted(error);
  }
}

/** Keeps the beginning of a stream and discards the rest. */
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
    // everything ended meanwhile
  }
}

function endOf(status: number | null, by: NodeJS.Signals | null): RunvaultError | null {
  if (status === 0) return null;
  const how = by === null ? `ended with status ${status}` : `was ended by ${by}`;
  // worth another attempt, like an HTTP 500
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
    hint: "Check notify.command: a program with a / in its name is relative to the job file's folder; others are looked up in PATH.",
  });
}
