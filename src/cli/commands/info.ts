import type { Command } from "commander";
import { z } from "zod";
import { commandEntry } from "../entry/command-entry.ts";
import { archiveOption, archiveShape, scratchOption, scratchShape } from "../options/archive-option.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({ ...archiveShape, ...scratchShape });

/** `runvault info` */
export const infoCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Summarises an archive on one screen: where it came from, runs by state, rows, sizes, the run that has been " +
          "unproven longest and what to do about it, what is pending, and free space. Reads manifests, not the data.",
      )
      .addOption(archiveOption())
      .addOption(scratchOption())
      .option("--json", "report as JSON, with every instance and table")
      .addHelpText("after", "\nExample:\n  runvault info\n"),
  run: info,
});

async function info(values: z.output<typeof schema>, session: Session): Promise<number> {
  const { archiveInfo } = await import("../maintain/archive-info.ts");
  const { commandsToCopy } = await import("../output/command-to-copy.ts");
  const { infoText } = await import("../maintain/info-text.ts");
  const { info: found, status } = await archiveInfo(values, session);
  await session.print(
    session.json
      ? `${JSON.stringify(found, null, 2)}\n`
      : infoText(found, commandsToCopy(values, session), session),
  );
  return status;
}
