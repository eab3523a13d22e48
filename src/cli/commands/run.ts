import type { Command } from "commander";
import { z } from "zod";
import { commandEntry } from "../entry/command-entry.ts";
import { jsonLinesOption } from "../options/json-lines.ts";
import { durationMs, nonEmpty } from "../options/option-values.ts";
import { setOption, setShape } from "../options/set-option.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  ...setShape,
  files: z.array(nonEmpty).min(1),
  dryRun: z.boolean().default(false),
  deadline: durationMs.optional(),
});

/** `runvault run FILE…` */
export const runCommand = commandEntry({
  schema,
  howToGoOn:
    "What is being converted is finished within the grace period; the same command continues from what is already fetched.",
  declare: (command: Command) =>
    command
      .description(
        "Executes jobs once, as their files say, one after another: archives their runs, verifies and exports what changed, " +
          "and keeps a record in the archive. Run it again to continue what was stopped.",
      )
      .argument("<files...>", "job files")
      .option(
        "--dry-run",
        "print what would be done with each run, its rows and disk space; nothing is written",
      )
      .option(
        "--deadline <time>",
        "replaces schedule.deadline; when it passes, no new run starts, fetching stops, and fetched rows are kept for the " +
          "next execution",
      )
      .addOption(setOption())
      .option("--json", "report as JSON at the end")
      .addOption(jsonLinesOption("report each line of the record as one JSON line when it is known"))
      .addHelpText(
        "after",
        `
SIGTERM and Ctrl-C do what the deadline does; a second one ends it at once. Environment variables
that the files name must be set.

Examples:
  runvault run pipelines/nightly.yaml --dry-run
  runvault run pipelines/nightly.yaml --deadline 2h
  runvault run pipelines/archive-run.yaml --set run=alpha-1/2022-01-01-001
`,
      ),
  run: runJobs,
});

async function runJobs(values: z.output<typeof schema>, session: Session): Promise<number> {
  // loaded when the command runs, so that other commands start without it
  const { executeFiles } = await import("../pipeline/execute-files.ts");
  return await executeFiles(values, session);
}
