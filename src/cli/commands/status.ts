import { type Command, Option } from "commander";
import { z } from "zod";
import { commandEntry } from "../entry/command-entry.ts";
import { scratchOption, scratchShape } from "../options/archive-option.ts";
import { ageMs, nonEmpty } from "../options/option-values.ts";
import { setOption, setShape } from "../options/set-option.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  ...setShape,
  archive: nonEmpty.optional(),
  ...scratchShape,
  file: nonEmpty.optional(),
  maxAge: ageMs.optional(),
});

/** `runvault status [FILE]` */
export const statusCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  // a job file names its archive
  unused: ({ file }) => (file === undefined ? [] : ["archive", "scratch"]),
  declare: (command: Command) =>
    command
      .description(
        "Shows the state of jobs and their archive: last success, last result, what is running or died, the next start, runs by " +
          "state, unproven and expiring runs, and how long the disk lasts. With a job file, for that job; " +
          "without one, for every job that has run in the archive, with the archive's rows, sizes, instances and " +
          "pending work. Reads manifests, not the data, and asks no gateway. Exit status 4 if a job never succeeded, or " +
          "not for too long.",
      )
      .argument("[file]", "a job file; it names the archive and the runs")
      .addOption(
        new Option("--archive <dir>", 'the archive folder, without a job file; default "archive"').env(
          "RUNVAULT_ARCHIVE",
        ),
      )
      .addOption(scratchOption())
      .option(
        "--max-age <age>",
        "how old the last success may be, such as 26h; default: two intervals of the job file's schedule",
      )
      .addOption(setOption())
      .option("--json", "report as JSON")
      .addHelpText(
        "after",
        `
Without a job file no schedule is known: then only --max-age decides what is too long.

Examples:
  runvault status
  runvault status nightly.yaml
  runvault status --archive /data/archive --max-age 26h
`,
      ),
  run: status,
});

async function status(values: z.output<typeof schema>, session: Session): Promise<number> {
  const { tellStatus } = await import("../pipeline/tell-status.ts");
  return await tellStatus(values, session);
}
