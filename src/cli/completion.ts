import type { Command } from "commander";
import { z } from "zod";
import { exit } from "../model/error.ts";
import { tableNames } from "../model/table.ts";
import { commandEntry } from "./command-entry.ts";
import type { Session } from "./session.ts";

const shells = ["bash", "zsh", "fish"] as const;
const schema = z.object({ shell: z.enum(shells) });

/** `runvault completion bash|zsh|fish` */
export const completionCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .name("completion")
      .summary("print a shell's completion script")
      .description("Prints a script that completes commands, options, tables and formats in a shell.")
      .addArgument(command.createArgument("<shell>", "the shell").choices(shells))
      .addHelpText(
        "after",
        `
bash needs its package bash-completion. The script calls runvault by that name, from the PATH.

Examples:
  runvault completion bash > ~/.local/share/bash-completion/completions/runvault
  runvault completion zsh > ~/.zfunc/_runvault     # a folder in fpath
  runvault completion fish > ~/.config/fish/completions/runvault.fish
`,
      ),
  run: printScript,
});

async function printScript({ shell }: z.output<typeof schema>, session: Session): Promise<number> {
  const { default: root } = await import("@bomb.sh/tab");
  const script = printed(() => root.setup("runvault", "runvault", shell));
  // bash looks for files where nothing else fits only when it was told to
  const filled = script.replace(/^complete -F /m, "complete -o default -F ");
  // sourced a second time, as people do after an upgrade, the script would stumble over its own constants
  await session.terminal.out(shell === "bash" ? filled.replace(/^(\s*)readonly /gm, "$1") : filled);
  return exit.done;
}

/** What the shell's script asks with: `runvault complete -- WORD…`, the last word being typed. */
export function isCompletionRequest(argv: readonly string[]): boolean {
  return argv[0] === "complete" && argv[1] === "--";
}

/** Completions for a command line of `program`, in the form that the scripts read. */
export async function completions(program: Command, words: readonly string[]): Promise<string> {
  const { default: tab } = await import("@bomb.sh/tab/commander");
  const before = words.at(-2) ?? "";
  const command = program.commands.find((candidate) => candidate.name() === words[0]);
  if (takesPath(command, before)) return `:${shellCompletesFiles}\n`;
  const root = tab(program, { completionCommandName: "completion" });
  for (const [name, completed] of root.commands) {
    const summary = program.commands.find((candidate) => candidate.name() === name)?.summary();
    if (summary !== undefined && summary !== "") completed.description = summary;
    const { arguments: taken, options } = completed;
    for (const holder of ["table", "tables"]) {
      for (const place of [taken.get(holder), options.get(holder)]) {
        if (place !== undefined) place.handler = (complete) => offer(complete, tableNames);
      }
    }
  }
  // the library knows one more, which was never tried here
  const shell = root.commands.get("completion")?.arguments.get("shell");
  if (shell !== undefined) shell.handler = (complete) => offer(complete, shells);
  return printed(() => root.parse([...words]));
}

const shellCompletesFiles = 0;

function offer(complete: (value: string, description: string) => void, values: readonly string[]): void {
  for (const value of values) complete(value, "");
}

/** Whether the word after a flag is a path: then the shell itself knows best. */
function takesPath(command: Command | undefined, flag: string): boolean {
  const option = command?.options.find(({ short, long }) => short === flag || long === flag);
  return option !== undefined && /<(dir|file|path)>/.test(option.flags);
}

/** The library prints with console.log and nothing else. */
function printed(body: () => void): string {
  const { log } = console;
  let text = "";
  console.log = (line: string) => {
    text += `${line}\n`;
  };
  try {
    body();
  } finally {
    console.log = log;
  }
  return text;
}
