import { runCommandLine } from "../src/cli/command-line.ts";
import type { Terminal } from "../src/cli/terminal.ts";
import type { Finished } from "./cli-process.ts";

/** The command line inside this process, which starts faster than one of its own. */
export async function runInside(args: readonly string[], more: Partial<Terminal> = {}): Promise<Finished> {
  const stdout: Uint8Array[] = [];
  let stderr = "";
  const status = await runCommandLine(args, {
    env: {},
    stderrIsTerminal: false,
    stdoutIsTerminal: false,
    out: async (data) => {
      stdout.push(typeof data === "string" ? Buffer.from(data) : Uint8Array.from(data));
      return true;
    },
    err: (text) => {
      stderr += text;
    },
    stderr: process.stderr,
    exit: (code) => process.exit(code),
    ...more,
  });
  return { status, stdout: Buffer.concat(stdout).toString("utf8"), stderr };
}
