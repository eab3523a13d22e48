import type { Command } from "commander";
import { z } from "zod";
import { exit } from "../../model/error.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { printed, shells } from "../entry/completions.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({ shell: z.enum(shells) });

/** `runvault completion bash|zsh|fish` */
export const completionCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description("Prints a script that completes commands, options, tables and formats in a shell.")
      .addArgument(command.createArgument("<shell>", "the shell").choices(shells))
      .addHelpText(
        "after",
        `
bash needs the package bash-completion. The script calls runvault, which must be on the PATH.

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
  // otherwise bash does not offer file names when nothing else matches
  const filled = script.replace(/^complete -F /m, "complete -o default -F ");
  // without this, sourcing the script again after an upgrade would fail on its own constants
  await session.terminal.out(shell === "bash" ? filled.replace(/^(\s*)readonly /gm, "$1") : filled);
  return exit.done;
}
