import { Command, CommanderError, Option } from "commander";
import { z } from "zod";
import { exit, RunvaultError } from "../model/error.ts";
import { createScrubber } from "../model/scrubber.ts";
import { visible, visibleLines } from "../model/visible-text.ts";
import { archiveCommand } from "./archive.ts";
import type { CommandEntry } from "./command-entry.ts";
import { completionCommand, completions, isCompletionRequest } from "./completion.ts";
import { diffCommand } from "./diff.ts";
import { exportCommand } from "./export.ts";
import { reportFailure } from "./failure.ts";
import { filesCommand } from "./files.ts";
import { listenForInterrupt } from "./interrupt.ts";
import { createLog, logFormats } from "./log.ts";
import { checkedValues } from "./option-values.ts";
import { aboveBar, showProgress } from "./progress.ts";
import { queryCommand } from "./query.ts";
import { rebuildCommand } from "./rebuild.ts";
import { rmCommand } from "./rm.ts";
import { runsCommand } from "./runs.ts";
import { serveCommand } from "./serve.ts";
import type { Session } from "./session.ts";
import { simulateCommand } from "./simulate.ts";
import type { Terminal } from "./terminal.ts";
import { tokenCommand } from "./token.ts";
import { verifyCommand } from "./verify.ts";
import { version } from "./version.ts";

const globalShape = {
  verbose: z.boolean().default(false),
  quiet: z.boolean().default(false),
  debug: z.boolean().default(false),
  logFormat: z.enum(logFormats),
  json: z.boolean().default(false),
};

/** Runs one command line. Never throws: what goes wrong is told on standard error. Gives the exit status. */
export async function runCommandLine(argv: readonly string[], terminal: Terminal): Promise<number> {
  const scrubber = createScrubber();
  let bar = false;
  const write = (text: string) => {
    const clean = visibleLines(scrubber.scrub(text));
    return terminal.err(bar ? aboveBar(clean) : clean);
  };
  const debug = argv.includes("--debug");
  const fail = (error: unknown) => reportFailure(error, { json: argv.includes("--json"), debug, write });
  let status: number = exit.done;
  unsetEmpty(process.env);

  const help: string[] = [];
  const program = new Command("runvault")
    .description(
      "Keeps the history of trading runs: archives it from a gateway, proves it complete, answers questions.",
    )
    .version(version(), "-V, --version")
    .addOption(new Option("-v, --verbose", "say more on standard error").conflicts("quiet"))
    .option("-q, --quiet", "say nothing on standard error but errors")
    .option("--debug", "with errors, print stack and causes")
    .addOption(
      new Option("--log-format <format>", "form of log lines on standard error")
        .choices(logFormats)
        .env("RUNVAULT_LOG_FORMAT")
        .default("text"),
    )
    .configureHelp({ showGlobalOptions: true })
    .helpCommand(true)
    .showSuggestionAfterError(true)
    .addHelpText("after", programHelp);

  const completing = isCompletionRequest(argv);
  for (const entry of entries) {
    // the library that completes brings its own
    if (completing && entry === completionCommand) continue;
    const command = entry.declare(program.command("x"));
    command.action(async () => {
      const schema = entry.schema.extend(globalShape).strict();
      const values = checkedValues(schema, command, entry.unused);
      const { verbose, quiet, logFormat, json } = values as z.output<z.ZodObject<typeof globalShape>>;
      using interrupt = listenForInterrupt({
        signals: terminal.signals,
        say: (text) => {
          if (!quiet) write(`${text}\n`);
        },
        howToGoOn: entry.howToGoOn,
        exit: terminal.exit,
      });
      const session: Session = {
        terminal,
        scrubber,
        json,
        signal: interrupt.signal,
        log: createLog({ format: logFormat, level: verbose ? "debug" : quiet ? "error" : "warn", write }),
        print: (text) => terminal.out(visibleLines(text)),
        note: (text) => {
          if (!quiet) write(`${visible(text)}\n`);
        },
        failure: (thrown) => reportFailure(thrown, { json, debug, write }),
        progress: () =>
          showProgress({
            style: quiet ? "off" : terminal.stderrIsTerminal && !json ? "bar" : "lines",
            stream: terminal.stderr,
            write,
            onBar: (up) => {
              bar = up;
            },
          }),
      };
      try {
        status = await entry.run(values, session);
      } catch (error) {
        if (!interrupt.signal.aborted) throw error;
        // whatever broke on the way out, the user's stop is the reason
        session.log.debug({ reason: RunvaultError.from(error).message }, "stopped");
        throw interrupt.signal.reason;
      }
    });
  }
  for (const command of [program, ...program.commands]) {
    command
      .exitOverride()
      .configureOutput({ writeOut: (text) => help.push(text), outputError: () => {}, writeErr: () => {} });
  }

  try {
    if (completing) {
      await terminal.out(await completions(program, argv.slice(2)));
      return exit.done;
    }
    if (argv.length === 0) {
      write(program.helpInformation());
      return exit.usage;
    }
    await program.parseAsync([...argv], { from: "user" });
    return status;
  } catch (error) {
    const isHelp = error instanceof CommanderError && error.exitCode === 0;
    return isHelp ? await terminal.out(help.join("")).then(() => exit.done, fail) : fail(error);
  }
}

/** An empty variable is how shells and schedulers leave one out; commander would take it for a value. */
function unsetEmpty(env: NodeJS.ProcessEnv): void {
  for (const [name, value] of Object.entries(env)) {
    if (name.startsWith("RUNVAULT_") && value === "") delete env[name];
  }
}

const entries: readonly CommandEntry[] = [
  archiveCommand,
  runsCommand,
  queryCommand,
  filesCommand,
  exportCommand,
  verifyCommand,
  diffCommand,
  rebuildCommand,
  rmCommand,
  serveCommand,
  tokenCommand,
  simulateCommand,
  completionCommand,
];

const programHelp = `
Examples:
  runvault archive --gateway http://127.0.0.1:8080/api/v1 --all --finished
  runvault query "SELECT symbol, count(*) FROM fills GROUP BY symbol"

Flags override environment variables (RUNVAULT_GATEWAY, RUNVAULT_ARCHIVE, RUNVAULT_TOKEN_FILE, …), which override defaults.

Exit status: 0 done; 1 a bug; 2 wrong usage or configuration; 3 gateway unreachable or refusing; 4 incomplete,
unverified or quarantined; 5 archive damaged; 6 locked by another job; 7 local storage full, read-only or forbidden;
130 and 143 interrupted.
`;
