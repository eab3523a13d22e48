import type { Command } from "commander";
import { z } from "zod";
import { RunvaultError } from "../model/error.ts";
import { commandEntry } from "./command-entry.ts";
import type { Session } from "./session.ts";

const schema = z.object({ a: z.string().min(1), b: z.string().min(1) });

export type DiffValues = z.output<typeof schema>;

/** `runvault diff A B` */
export const diffCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .name("diff")
      .summary("say whether two archives hold the same")
      .description(
        "Compares two archives: per table the same lines in the same order, the same row hash, the same buckets and " +
          "counts. Times, generations and file names do not count. Exit status 4 when they differ.",
      )
      .argument("<a>", "an archive folder")
      .argument("<b>", "another archive folder")
      .option("--json", "report as JSON")
      .addHelpText("after", "\nExample:\n  runvault diff archive /mnt/copy/archive\n"),
  run: diff,
});

async function diff(_values: DiffValues, _session: Session): Promise<number> {
  throw new RunvaultError("internal", "diff is not connected yet");
}
