import { type Command, Option } from "commander";
import { z } from "zod";
import { commandEntry } from "../entry/command-entry.ts";
import { ageMs, nonEmpty } from "../options/option-values.ts";
import { setOption, setShape } from "../options/set-option.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  ...setShape,
  archive: nonEmpty.optional(),
  file: nonEmpty.optional(),
  maxAge: ageMs.optional(),
});

/** `runvault status [FILE]` */
export const statusCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  // a job file names its archive
  unused: ({ file }) => (file === undefined ? [] : ["archive"]),
  declare: (command: Command) =>
    command
      .description(
        "Says how jobs stand: last success, last result, what is running or died, the next start, runs by state, what is " +
          "unproven or about to expire, and how long the disk lasts. Of one job file, or of every job that has run in " +
          "an archive. Asks no gateway. Exit status 4 if a job never succeeded, or not for too long.",
      )
      .argument("[file]", "a job file, whose archive and runs are looked at")
      .addOption(
        new Option("--archive <dir>", 'the archive folder, without a job file; default "archive"').env(
          "RUNVAULT_ARCHIVE",
        ),
      )
      .option(
        "--max-age <age>",
        "how old the last success may be, such as 26h; default: two intervals of the job file's schedule",
      )
      .addOption(setOption())
      .option("--json", "report as JSON")
      .addHelpText(
        "after",
        `
Without a job file nothing is known of a schedule: then --max-age alone says what is too long.

Examples:
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
