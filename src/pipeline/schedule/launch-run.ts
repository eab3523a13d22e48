import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { RunningProcess } from "./scheduler.ts";

/** Starts `runvault run FILE` as a separate process. `program` runs runvault; `say` gets each line that it prints. */
export function launchRun(
  program: readonly [string, ...string[]],
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  say: (line: string) => void,
): RunningProcess {
  const [command, ...rest] = program;
  // in its own process group, so that Ctrl-C reaches it only through the scheduler: a second signal would kill it
  const child = spawn(command, [...rest, ...args], {
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines = (stream: Readable) => createInterface(stream).on("line", say);
  lines(child.stdout);
  lines(child.stderr);
  const ended = new Promise<Awaited<RunningProcess["ended"]>>((resolve) => {
    child.once("error", (error) => {
      say(`could not be started: ${error.message}`);
      resolve({ status: null, signal: null });
    });
    child.once("close", (status, signal) => resolve({ status, signal }));
  });
  return { ended, kill: (signal) => void child.kill(signal) };
}
