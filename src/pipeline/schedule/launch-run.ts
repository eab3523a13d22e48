import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { RunningProcess } from "./scheduler.ts";

/** Starts `runvault run FILE` as a process of its own. `program` is what runs runvault; `say` gets each line that it prints. */
export function launchRun(
  program: readonly [string, ...string[]],
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  say: (line: string) => void,
): RunningProcess {
  const [command, ...rest] = program;
  // in a group of its own: Ctrl-C at a terminal reaches it through the scheduler alone, for a second signal ends it at once
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
