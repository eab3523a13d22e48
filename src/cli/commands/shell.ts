import { createInterface, type Interface } from "node:readline";
import { type Command, Option } from "commander";
import { z } from "zod";
import { formats } from "../../analytics/render/format.ts";
import { exit } from "../../model/error.ts";
import { openStatementRunner } from "../apart/statement-runner.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { addStatementOptions, statementShape } from "../options/statement-options.ts";
import type { Session } from "../process/session.ts";
import { completed } from "../shell/shell-completion.ts";
import { historyFile, openHistory } from "../shell/shell-history.ts";
import { ShellSession } from "../shell/shell-session.ts";
import { sqlLines } from "../shell/sql-text.ts";
import { StatementReader } from "../shell/statement-reader.ts";

const schema = z.object({ ...statementShape, format: z.enum(formats) });

/** `runvault shell` */
export const shellCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    addStatementOptions(
      command
        .description(
          "Runs statements as they are typed or read from standard input, each with the limits of `query` and over what is " +
            "committed at that time. A statement ends with a semicolon; .help lists the shell's own commands.",
        )
        .addOption(
          new Option("-f, --format <format>", "format of the answers").choices(formats).default("table"),
        ),
    ).addHelpText(
      "after",
      `
On a terminal, Tab completes tables, columns and SQL keywords. The history of lines is kept in the
file that RUNVAULT_HISTORY names (default: $XDG_STATE_HOME/runvault/history, which usually is
~/.local/state/runvault/history; only its owner can read it; /dev/null keeps none). Ctrl-C stops the
running statement or clears the line; Ctrl-D, or Ctrl-C twice at an empty prompt, quits.

Without a terminal the first error ends the shell, with the exit status of that error.

Examples:
  runvault shell
  runvault shell --format csv < report.sql > report.csv
`,
    ),
  run: runShell,
});

const prompts = { first: "runvault> ", more: "     ...> " };

async function runShell(values: z.output<typeof schema>, session: Session): Promise<number> {
  const { terminal, signal } = session;
  await using runner = openStatementRunner(values, session);
  const isTyped = terminal.stdinIsTerminal;
  const state = { format: values.format, out: null, timing: isTyped };
  const shell = new ShellSession(runner, session, state, isTyped);
  const reader = new StatementReader(isTyped ? null : "standard input");
  const typed = isTyped ? await typedLines(shell, reader, session) : null;
  const close = () => typed?.close();
  signal.addEventListener("abort", close, { once: true });
  let status: number = exit.done;
  try {
    const prompt = () => {
      typed?.setPrompt(reader.isWithin ? prompts.more : prompts.first);
      typed?.prompt();
    };
    prompt();
    for await (const line of typed ?? sqlLines(terminal.stdin, signal)) {
      status = await shell.line(line, reader);
      if (shell.hasQuit || (status !== exit.done && !isTyped)) break;
      prompt();
    }
    signal.throwIfAborted();
    if (isTyped) return exit.done;
    return status !== exit.done || shell.hasQuit ? status : await shell.end(reader);
  } finally {
    signal.removeEventListener("abort", close);
    close();
  }
}

/** Lines that a person types, with editing and completion. */
async function typedLines(
  shell: ShellSession,
  reader: StatementReader,
  { terminal, note, signal }: Session,
): Promise<Interface> {
  const history = await openHistory(historyFile(process.env), note);
  note("runvault shell: end statements with a semicolon; .help lists other commands");
  const lines = createInterface({
    input: terminal.stdin,
    output: terminal.stderr,
    // only prompts if the cursor cannot be moved
    terminal: terminal.stderrIsTerminal,
    history: [...history.lines],
    historySize: 1_000,
    removeHistoryDuplicates: true,
    completer: (line: string) => completed(line, reader.text),
  });
  lines.on("close", () => {
    // Ctrl-D leaves the cursor after the prompt
    if (!signal.aborted) terminal.err("\n");
  });
  let wasEmpty = false;
  lines.on("line", (line) => {
    wasEmpty = false;
    if (line.trim() !== "") void history.add(line);
  });
  lines.on("SIGINT", () => {
    if (shell.cancel()) return;
    const isEmpty = lines.line === "" && !reader.isWithin;
    if (isEmpty && wasEmpty) return lines.close();
    wasEmpty = isEmpty;
    reader.clear();
    terminal.err(isEmpty ? "\npress Ctrl-C again, or Ctrl-D, to quit\n" : "\n");
    // the typed text stays on the screen but is dropped
    lines.write(null, { ctrl: true, name: "e" });
    lines.write(null, { ctrl: true, name: "u" });
    lines.setPrompt(prompts.first);
    lines.prompt();
  });
  return lines;
}
