import type { Command } from "commander";
import { z } from "zod";
import { RunvaultError } from "../../model/error.ts";
import { parseInstance, runArgumentHelp } from "../../model/run-argument.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { archiveOption, archiveShape, scratchOption, scratchShape } from "../options/archive-option.ts";
import { removalAgeMs } from "../options/option-values.ts";
import { runsNamed } from "../options/runs-named.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  ...archiveShape,
  ...scratchShape,
  runs: z.array(z.string()).default([]),
  olderThan: removalAgeMs.optional(),
  anyState: z.boolean().default(false),
  dryRun: z.boolean().default(false),
});

type RmValues = z.output<typeof schema>;

/** `runvault rm RUN…`, `runvault rm --older-than AGE [INSTANCE…]` */
export const rmCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Removes runs: first their manifests, so that no reader sees half a run, then their files. Named runs are removed " +
          "whatever their state; --older-than removes those that are COMPLETE and ended longer ago than AGE. A job that takes a run fetches it again.",
      )
      .argument(
        "[runs...]",
        `${runArgumentHelp}; with --older-than, INSTANCE limits it to the runs of that instance`,
      )
      .addOption(archiveOption())
      .addOption(scratchOption())
      .option(
        "--older-than <age>",
        "runs that ended longer ago than AGE, such as 90d, counted from the run's end or its newest row, whichever is " +
          "later; if the end is unknown, from its last commit",
      )
      .option(
        "--any-state",
        "with --older-than: also runs that are still running, are not proven, or have work that is not committed",
      )
      .option("--dry-run", "print what would be removed, and its size, and remove nothing")
      .option("--json", "report as JSON")
      .addHelpText(
        "after",
        `
Examples:
  runvault rm alpha-1/2022-01-01-001
  runvault rm --older-than 90d --dry-run
  runvault rm --older-than 90d alpha-1
`,
      ),
  run: remove,
});

async function remove(values: RmValues, session: Session): Promise<number> {
  const { runs, olderThan } = values;
  if (olderThan === undefined) {
    if (values.anyState)
      throw wrong(
        "--any-state needs --older-than",
        "Named runs are removed whatever their state: leave --any-state out.",
      );
    if (runs.length === 0) {
      throw wrong("no run is named", "Name runs as INSTANCE/RUN, or give --older-than, such as 90d.");
    }
    const named = await runsNamed(runs, values.archive, session);
    const { removeNamed } = await import("../maintain/remove-runs.ts");
    return await removeNamed(named, values, session);
  }
  const run = runs.find((text) => text.includes("/"));
  if (run !== undefined) {
    throw wrong(
      `--older-than takes instances, but ${JSON.stringify(run)} is a run`,
      "Name an INSTANCE, or leave --older-than out: a run that is named is removed whatever its age.",
    );
  }
  const instances = runs.map(parseInstance);
  const { removeOlder } = await import("../maintain/remove-runs.ts");
  return await removeOlder(olderThan, instances, values, session);
}

function wrong(message: string, hint: string): RunvaultError {
  return new RunvaultError("invalid_argument", message, { hint });
}
