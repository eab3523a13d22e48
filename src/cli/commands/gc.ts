import type { Command } from "commander";
import { z } from "zod";
import { commandEntry } from "../entry/command-entry.ts";
import { archiveOption, archiveShape, scratchOption, scratchShape } from "../options/archive-option.ts";
import { removalAgeMs } from "../options/option-values.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  ...archiveShape,
  ...scratchShape,
  grace: removalAgeMs.default(24 * 3_600_000),
  dryRun: z.boolean().default(false),
});

/** `runvault gc` */
export const gcCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Removes files that no run of the archive needs any more: those that no manifest names, replaced generations, leftover " +
          "work, and the locks, cache and links of removed runs. Keeps runs that a job is working on, files that a " +
          "reader may have open, and files that are not runvault's.",
      )
      .addOption(archiveOption())
      .addOption(scratchOption())
      .option("--grace <age>", "keep what changed within AGE, such as 12h or 7d; default 24h")
      .option("--dry-run", "print what would be removed, and its size, and remove nothing")
      .option("--json", "report as JSON")
      .addHelpText(
        "after",
        `
Examples:
  runvault gc --dry-run
  runvault gc --grace 7d
`,
      ),
  run: collect,
});

async function collect(values: z.output<typeof schema>, session: Session): Promise<number> {
  const { collectAndTell } = await import("../maintain/collect-and-tell.ts");
  return await collectAndTell(values, session);
}
