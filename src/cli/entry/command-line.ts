import { Command, CommanderError, Option } from "commander";
import { exit, RunvaultError } from "../../model/error.ts";
import { createScrubber } from "../../model/text/scrubber.ts";
import { visibleLines } from "../../model/text/visible-text.ts";
import { version } from "../../model/version.ts";
import { jsonLinesFlag } from "../options/json-lines.ts";
import { aboveBar } from "../output/progress.ts";
import type { Terminal } from "../output/terminal.ts";
import { wrapLines } from "../output/wrap-lines.ts";
import { reportFailure } from "../process/failure.ts";
import { listenForInterrupt } from "../process/interrupt.ts";
import { logFormats } from "../process/log-format.ts";
import { hintTextOf, openSession } from "../process/open-session.ts";
import { parseError } from "../process/parse-error.ts";
import { helpItem, leastColumns, usualColumns, wrapHelp } from "./help-width.ts";
import type { KnownCommand } from "./known-commands.ts";

/**
 * Runs one command line, given the commands that it may name. Never throws: errors are printed on standard error.
 * Returns the exit status.
 */
export async function runCommandLine(
  argv: readonly string[],
  terminal: Terminal,
  commands: readonly KnownCommand[],
): Promise<number> {
  const scrubber = createScrubber();
  let bar = false;
  const write = (text: string) => {
    const clean = visibleLines(scrubber.scrub(text));
    return terminal.err(bar ? aboveBar(clean) : clean);
  };
  const debug = argv.includes("--debug");
  const named = namedIn(argv, commands);
  const fail = (error: unknown) =>
    reportFailure(parseError(error, { argv, command: named, names: commands.map(({ name }) => name) }), {
      json: argv.includes("--json") || argv.includes(jsonLinesFlag),
      debug,
      hintText,
      write,
    });
  let hintText = hintTextOf(null, terminal);
  let status: number = exit.done;
  unsetEmpty(process.env);

  const help: string[] = [];
  // these settings also apply to the commands below
  const program = new Command("runvault")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => help.push(text),
      writeErr: (text) => help.push(text),
      outputError: () => {},
      getOutHelpWidth: () => terminal.columns ?? usualColumns,
      getErrHelpWidth: () => terminal.columns ?? usualColumns,
    })
    .description(
      "Keeps the history of trading runs: archives it from a gateway, proves it complete and answers queries.",
    )
    .version(version(), "-V, --version")
    .addOption(new Option("-v, --verbose", "print more on standard error").conflicts("quiet"))
    .option("-q, --quiet", "print no notes, warnings or progress; `archive` then reports only what is wrong")
    .option("--debug", "print the stack and causes of errors")
    .addOption(
      new Option("--log-format <format>", "form of log lines on standard error")
        .choices(logFormats)
        .env("RUNVAULT_LOG_FORMAT")
        .default("text"),
    )
    .configureHelp({
      showGlobalOptions: true,
      minWidthToWrap: leastColumns,
      subcommandTerm: (command) => command.name(),
      formatItem: helpItem,
    })
    .commandsGroup("More:")
    .helpCommand("help [command...]", "show the help of a command")
    .showSuggestionAfterError(true)
    .addHelpText("after", programHelp);

  const completing = argv[0] === "complete" && argv[1] === "--";
  for (const { name, summary, group, entry } of commands) {
    // the completion library adds its own
    if (completing && name === "completion") continue;
    const words = name.split(" ");
    const command = declared(program, words).summary(summary);
    // the groups are those of the first words
    if (words.length === 1) command.helpGroup(`${group}:`);
    if (entry === null) {
      command.description(`${summary[0]!.toUpperCase()}${summary.slice(1)}.`);
      continue;
    }
    entry.declare(command).action(async () => {
      const { globals, folders, run } = entry.check(command);
      hintText = hintTextOf(folders, terminal);
      using interrupt = listenForInterrupt({
        signals: terminal.signals,
        say: (text) => {
          if (!globals.quiet) write(wrapLines(`${text}\n`, terminal.columns));
        },
        howToGoOn: entry.howToGoOn,
        endBy: terminal.endBy,
      });
      const { signal } = interrupt;
      const onBar = (up: boolean) => {
        bar = up;
      };
      const session = openSession({ globals, terminal, scrubber, signal, folders, write, onBar });
      try {
        status = await run(session);
      } catch (error) {
        if (!interrupt.signal.aborted) throw error;
        // whatever failed on the way out, the user's stop is the reason
        session.log.debug({ reason: RunvaultError.from(error).message }, "stopped");
        throw interrupt.signal.reason;
      }
    });
  }
  try {
    if (completing) {
      const { completions } = await import("./completions.ts");
      await terminal.out(await completions(program, argv.slice(2), terminal.env));
      return exit.done;
    }
    if (argv.length === 0) {
      write(wrapHelp(program.helpInformation(), terminal.columns));
      return exit.usage;
    }
    await program.parseAsync(asked(argv, commands), { from: "user" });
    return status;
  } catch (error) {
    const isHelp = error instanceof CommanderError && error.exitCode === 0;
    const helpText = wrapHelp(help.join(""), terminal.columns);
    if (isHelp) return await terminal.out(helpText).then(() => exit.done, fail);
    if (help.length === 0) return fail(error);
    // a command that only has others below it, called without one
    write(helpText);
    return exit.usage;
  }
}

/** Declares a command under these words, one for each level. */
function declared(above: Command, [word = "", ...below]: readonly string[]): Command {
  if (below.length === 0) return above.command(word).helpCommand(false);
  const parent = above.commands.find((command) => command.name() === word) ?? above.command(word);
  // so that an option after the subcommand's name is not taken for the parent's
  return declared(parent.enablePositionalOptions(), below);
}

/** The name of the command in a line, one word or two. */
function namedIn(argv: readonly string[], commands: readonly KnownCommand[]): string | undefined {
  const names = commands.map(({ name }) => name);
  const at = argv.findIndex((word) => names.includes(word));
  const two = `${argv[at]} ${argv[at + 1]}`;
  return names.includes(two) ? two : argv[at];
}

/** Turns help for an unknown command into a call of it, for the same error and suggestion. */
function asked(argv: readonly string[], commands: readonly KnownCommand[]): string[] {
  const [first, named, ...more] = argv;
  if (first !== "help" || named === undefined || named.startsWith("-")) return [...argv];
  return commands.some(({ name }) => name === named) ? [named, ...more, "--help"] : [named];
}

/** Shells and schedulers unset a variable by emptying it, but commander would take the empty text as a value. */
function unsetEmpty(env: NodeJS.ProcessEnv): void {
  for (const [name, value] of Object.entries(env)) {
    if (name.startsWith("RUNVAULT_") && value === "") delete env[name];
  }
}

const programHelp = `
Examples:
  runvault archive --gateway http://127.0.0.1:8080/api/v1 --all --finished
  runvault query "SELECT symbol, count(*) FROM fills GROUP BY symbol"

Options override environment variables (RUNVAULT_GATEWAY, RUNVAULT_ARCHIVE, RUNVAULT_TOKEN_FILE, …),
which override defaults.

Exit status:
  0         done
  1         a bug in runvault
  2         wrong usage or configuration
  3         gateway out of reach, too slow, or no gateway at all
  4         incomplete, unverified, quarantined, or different
  5         archive damaged
  6         locked by another job
  7         local storage full, read-only or access denied
  8         deadline reached: the rest is left for the next time
  9         refused: the token, or an instance, run or route that the gateway does not have
  130, 143  interrupted by Ctrl-C or SIGTERM
If several apply, the exit status is the first of 1, 5, 7, 9, 3, 4, 8, 6.
A retry helps after 3, 6, 7 and 8.
`;
