import { type Command, Option } from "commander";
import { z } from "zod";
import { exit, RunvaultError, worstExit } from "../../model/error.ts";
import type { ConnectedJob } from "../../pipeline/connect/connect-job.ts";
import type { ReadJobFiles } from "../../pipeline/file/job-files.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { nonEmpty } from "../options/option-values.ts";
import { setOption, setShape } from "../options/set-option.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  ...setShape,
  files: z.array(nonEmpty).min(1),
  connect: z.boolean().default(false),
  testNotify: z.boolean().default(false),
});

/** `runvault check FILE…` */
export const checkCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Checks job files without a network: prints what each would do and when it starts next, or everything that is wrong " +
          "with it, each with line and column. Exit status 2 if a file has an error. With --connect it also checks that " +
          "everything they name is there and can be used.",
      )
      .argument("<files...>", "job files; several are also checked against each other")
      .option(
        "--connect",
        "also ask the gateway for its lists, and check that the archive, exports and notifiers can be reached; nothing is written or sent",
      )
      .addOption(
        new Option(
          "--test-notify",
          "send a test to every notifier of the file, and print whether each one worked",
        ).conflicts("connect"),
      )
      .addOption(setOption())
      .option("--json", "report as JSON")
      .addHelpText(
        "after",
        `
Environment variables that the files name must be set, as for a run. Their values are never
printed.

With --connect the exit status also reports what was found: 3 if the gateway or a notifier is
out of reach, 9 if the gateway refuses the token or has no such instance or run, 7 if a folder
cannot be written to or the disk is full. It connects to the notifiers' addresses but sends nothing.

--test-notify takes one file. It calls the heartbeat as for a job that begins and succeeds, and
leaves the metrics file as it is. Exit status 3 if a test fails.

Examples:
  runvault check nightly.yaml --connect
  runvault check nightly.yaml --test-notify
  runvault check pipelines/*.yaml
  runvault check pipelines/archive-run.yaml --set run=alpha-1/2022-01-01-001
`,
      ),
  run: check,
});

async function check(values: z.output<typeof schema>, session: Session): Promise<number> {
  const { readJobFiles } = await import("../../pipeline/file/job-files.ts");
  const { checkJson, checkText } = await import("../pipeline/check-report.ts");
  const read = await readJobFiles(values.files, { env: session.terminal.env, set: values.set });
  const isSound = read.faults.length === 0 && read.files.every(({ job }) => job !== null);
  if (values.testNotify && values.files.length > 1) {
    throw new RunvaultError("invalid_argument", "--test-notify takes one file", {
      hint: "Run `runvault check FILE --test-notify` for each of them.",
    });
  }
  const [file] = read.files;
  if (values.testNotify && isSound && file?.job != null) {
    const { testNotifiers } = await import("../pipeline/test-notifiers.ts");
    return await testNotifiers(file.job.job, session);
  }
  const connected = values.connect ? await connectedOf(read, session) : null;
  const now = new Date();
  await session.print(
    session.json ? checkJson(read, now, connected) : checkText(read, now, session.globals, connected),
  );
  return worstExit([
    isSound ? exit.done : exit.usage,
    ...[...(connected?.values() ?? [])].map(({ exit }) => exit),
  ]);
}

async function connectedOf(read: ReadJobFiles, session: Session): Promise<ReadonlyMap<string, ConnectedJob>> {
  // so that checking files alone starts without the gateway client
  const { connectFiles } = await import("../pipeline/connect-files.ts");
  return await connectFiles(read, session);
}
