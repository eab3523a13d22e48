import type { Command } from "commander";
import { z } from "zod";
import { worstExit } from "../model/error.ts";
import type { RunRef } from "../model/source.ts";
import { visible } from "../model/visible-text.ts";
import { archiveOption, archiveShape, scratchOption, scratchShape } from "./archive-option.ts";
import { commandEntry } from "./command-entry.ts";
import { killStep } from "./kill-step.ts";
import { formatRun, parseRun, runArgumentHelp } from "./run-argument.ts";
import type { Session } from "./session.ts";

const schema = z.object({ ...archiveShape, ...scratchShape, runs: z.array(z.string()).min(1) });

type RmValues = z.output<typeof schema>;

/** `runvault rm RUN…` */
export const rmCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Removes runs: first their manifests, so that no reader sees half a run, then their files.",
      )
      .argument("<runs...>", runArgumentHelp)
      .addOption(archiveOption())
      .addOption(scratchOption())
      .option("--json", "report as JSON")
      .addHelpText("after", "\nExample:\n  runvault rm alpha-1/2022-01-01-001\n"),
  run: remove,
});

async function remove(values: RmValues, session: Session): Promise<number> {
  const runs = values.runs.map(parseRun);
  const { openArchive } = await import("../archive/archive.ts");
  const { removeRun } = await import("../archive/remove.ts");
  const archive = await openArchive(values.archive, { scratch: values.scratch });
  const statuses: number[] = [];
  const removed: RunRef[] = [];
  for (const run of runs) {
    try {
      session.signal.throwIfAborted();
      const foreign = await removeRun(archive, run, { step: killStep(session.terminal.env) });
      for (const path of foreign) session.note(`left ${path}: it is not the archive's`);
      removed.push(run);
    } catch (error) {
      session.signal.throwIfAborted();
      statuses.push(session.failure(error));
    }
  }
  const text = session.json
    ? `${JSON.stringify({ removed }, null, 2)}\n`
    : removed.map((run) => `removed ${visible(formatRun(run))}\n`).join("");
  await session.print(text);
  return worstExit(statuses);
}
