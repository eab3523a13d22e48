import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../src/cli/main.ts", import.meta.url));

export interface Finished {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  readonly finished: Promise<Finished>;
  /** Resolves once standard output or error holds the text. */
  seen(text: string): Promise<void>;
}

/**
 * Starts the command line in a process of its own, with nothing of this process's RUNVAULT_ environment. `before` is
 * what to start it by, such as a shell that sets limits and then becomes what follows; `user` is whose process it is.
 */
export function start(
  args: readonly string[],
  env: Record<string, string> = {},
  before: readonly string[] = [],
  user: { readonly uid?: number; readonly gid?: number } = {},
): Running {
  const clean = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("RUNVAULT_")),
  );
  const [program, ...rest] = [...before, process.execPath, main, ...args] as [string, ...string[]];
  // / as the folder of another user, who may not be able to enter this one
  const folder = user.uid === undefined ? {} : { cwd: "/" };
  const child = spawn(program, rest, { ...user, ...folder, env: { ...clean, ...env } });
  let stdout = "";
  let stderr = "";
  const finished = new Promise<Finished>((done, failed) => {
    child.on("error", failed);
    child.on("close", (status) => done({ status, stdout, stderr }));
  });
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  const seen = async (text: string) => {
    while (!stdout.includes(text) && !stderr.includes(text)) {
      if (child.exitCode !== null) throw new Error(`ended without ${text}: ${stdout}${stderr}`);
      await new Promise((wait) => setTimeout(wait, 10));
    }
  };
  return { child, finished, seen };
}

export function run(args: readonly string[], env: Record<string, string> = {}): Promise<Finished> {
  return start(args, env).finished;
}
