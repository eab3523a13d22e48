import type { Command } from "commander";
import { z } from "zod";
import { acceptReasonSchema } from "../../archive/manifest/manifest.ts";
import { RunvaultError } from "../../model/error.ts";
import { tableNamed } from "../../model/profile/table.ts";
import { runArgumentHelp } from "../../model/run-argument.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { archiveOption, archiveShape, scratchOption, scratchShape } from "../options/archive-option.ts";
import { runsNamed } from "../options/runs-named.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  ...archiveShape,
  ...scratchShape,
  run: z.string(),
  table: z.string(),
  reason: acceptReasonSchema.optional(),
  undo: z.boolean().default(false),
});

/** `runvault maintain accept RUN TABLE --reason TEXT` */
export const acceptCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Keeps a table that is QUARANTINED, UNVERIFIED or INCOMPLETE as it is. Its state stays visible, with the reason beside " +
          "it, but no longer fails `archive` or `verify`, and the table is not fetched again until it changes at the gateway.",
      )
      .argument("<run>", runArgumentHelp)
      .argument("<table>", "a table of the run")
      .addOption(archiveOption())
      .addOption(scratchOption())
      .option("--reason <text>", "why, in one line of at most 500 characters")
      .option("--undo", "take back what was accepted: the next `archive` of the run fetches the table again")
      .option("--json", "report as JSON")
      .addHelpText(
        "after",
        `
An acceptance ends when the run's storage version changes or, where the gateway has none, its
count of the table; when the run ends; or when files of the table are lost. The job that notices
this reports it and fetches the table again. Readers show the same rows as before, and name the
table; --strict still exits with 4.

Examples:
  runvault maintain accept alpha-1/2022-01-01-001 fills --reason "one row has no price"
  runvault maintain accept alpha-1/2022-01-01-001 fills --undo
`,
      ),
  run: accept,
});

async function accept(values: z.output<typeof schema>, session: Session): Promise<number> {
  const { reason, undo } = values;
  if (undo && reason !== undefined) throw wrong("--undo takes no --reason", "Leave one of them out.");
  if (!undo && reason === undefined)
    throw wrong(
      "the reason is missing",
      'Give it as --reason "TEXT": it is shown wherever the table\'s state is.',
    );
  const [run] = await runsNamed([values.run], values.archive, session);
  const table = tableNamed(values.table).name;
  const { acceptAndTell } = await import("../maintain/accept-and-tell.ts");
  return await acceptAndTell({ run: run!, table, reason: reason?.trim() ?? null }, values, session);
}

function wrong(message: string, hint: string): RunvaultError {
  return new RunvaultError("invalid_argument", message, { hint });
}
