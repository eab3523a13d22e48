import { keepCompiled } from "../process/compile-cache.ts";

/** Runs the process's own command line. */
export async function start(): Promise<void> {
  keepCompiled(process.env);
  const { runCommandLine, knownCommands, processTerminal } = await loadCommandLine();
  const argv = process.argv.slice(2);
  const commands = await knownCommands(argv);
  process.exitCode = await runCommandLine(argv, processTerminal(), commands);
}

/** After the compile cache is on, so that these are loaded from it. */
async function loadCommandLine() {
  const { runCommandLine } = await import("./command-line.ts");
  const { knownCommands } = await import("./known-commands.ts");
  const { processTerminal } = await import("../output/terminal.ts");
  return { runCommandLine, knownCommands, processTerminal };
}
