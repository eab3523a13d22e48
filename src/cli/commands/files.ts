import type { Command } from "commander";
import { z } from "zod";
import { tableNamed } from "../../model/profile/table.ts";
import { parseRun, runArgumentHelp } from "../../model/run-argument.ts";
import { visible } from "../../model/text/visible-text.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { archiveOption, archiveShape } from "../options/archive-option.ts";
import { allowIncompleteOption, readerShape, strictOption } from "../options/reader-options.ts";
import { tellShortfall } from "../output/tell-shortfall.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  ...archiveShape,
  table: z.string(),
  runs: z.array(z.string()).default([]),
  ...readerShape,
});

/** `runvault files TABLE [INSTANCE/RUN…]` */
export const filesCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Prints the committed Parquet files of a table, one path per line, all from one state of the archive, for any " +
          "Parquet reader. Each file is checked against its commit. Files replaced by a commit are kept for an hour.",
      )
      .argument("<table>", "name of the table")
      .argument("[runs...]", runArgumentHelp)
      .addOption(archiveOption())
      .addOption(allowIncompleteOption())
      .addOption(strictOption())
      .option(
        "--json",
        "print an array of objects with file, instance, run, bucket, rows, bytes and sha256; what is withheld goes to standard error",
      )
      .addHelpText("after", "\nExample:\n  runvault files fills alpha-1/2022-01-01-001\n"),
  run: listFiles,
});

async function listFiles(values: z.output<typeof schema>, session: Session): Promise<number> {
  const table = tableNamed(values.table).name;
  const runs = values.runs.map(parseRun);
  const { openArchive } = await import("../../archive/archive.ts");
  const { committedParquet, requireWhole } = await import("../../analytics/files/committed-parquet.ts");
  const { shortfallOf } = await import("../../analytics/shortfall.ts");
  const { WholeFiles } = await import("../../archive/read/whole-files.ts");
  const { refuseMixedTypes } = await import("../../analytics/files/typed-parquet.ts");
  const archive = await openArchive(values.archive);
  const { manifestsOf } = await import("../list/manifests-of.ts");
  const manifests = await manifestsOf(archive, runs);
  const committed = committedParquet(archive, manifests, table, values.allowIncomplete);
  refuseMixedTypes(table, committed);
  await requireWhole(new WholeFiles(archive), committed, session.signal);
  const files = committed.map(({ file, instance, run, bucket, rows, bytes, sha256 }) => {
    return { file, instance, run, bucket, rows, bytes, sha256 };
  });
  if (session.json) await session.print(`${JSON.stringify(files, null, 2)}\n`);
  else {
    // a program opens them by exactly these names
    const shown = session.terminal.stdoutIsTerminal ? visible : (name: string) => name;
    await session.terminal.out(files.map(({ file }) => `${shown(file)}\n`).join(""));
  }
  return await tellShortfall(shortfallOf(manifests, [table], values.allowIncomplete), values, session);
}
