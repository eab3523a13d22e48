import type { Command } from "commander";
import { z } from "zod";
import { RunvaultError } from "../model/error.ts";
import { archiveOption, archiveShape } from "./archive-option.ts";
import { commandEntry } from "./command-entry.ts";
import { parseRun, runArgumentHelp } from "./run-argument.ts";
import type { Session } from "./session.ts";

const schema = z.object({ ...archiveShape, runs: z.array(z.string()).min(1) });

export type RmValues = z.output<typeof schema>;

/** `runvault rm RUN…` */
export const rmCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .name("rm")
      .summary("remove runs from the archive")
      .description(
        "Removes runs: first their manifests, so that no reader sees half a run, then their files.",
      )
      .argument("<runs...>", runArgumentHelp)
      .addOption(archiveOption())
      .option("--json", "report as JSON")
      .addHelpText("after", "\nExample:\n  runvault rm alpha-1/2022-01-01-001\n"),
  run: remove,
});

async function remove(values: RmValues, _session: Session): Promise<number> {
  values.runs.map(parseRun);
  throw new RunvaultError("internal", "rm is not connected yet");
}
