import type { Command } from "commander";
import { z } from "zod";
import { runArgumentHelp } from "../../model/run-argument.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { archiveOption, archiveShape } from "../options/archive-option.ts";
import { instrumentsOption } from "../options/instruments-option.ts";
import { nonEmpty } from "../options/option-values.ts";
import { strictOption } from "../options/reader-options.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  ...archiveShape,
  dir: nonEmpty,
  run: z.string().optional(),
  instruments: nonEmpty.optional(),
  strict: z.boolean().default(false),
});

/** `runvault notebook DIR [INSTANCE/RUN]` */
export const notebookCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again: no notebook was written.",
  declare: (command: Command) =>
    command
      .description(
        "Writes a Jupyter notebook on one run, and next to it run.duckdb, which reads the run's rows in the archive and has " +
          "the macros and the tables of trades: figures, equity, drawdowns, trades.",
      )
      .argument("<dir>", "the folder to write to; it may not have one-run.ipynb or run.duckdb")
      .argument("[run]", `${runArgumentHelp} (default: the run that began last of those that have ended)`)
      .addOption(archiveOption())
      .addOption(instrumentsOption())
      .addOption(strictOption())
      .option(
        "--json",
        "report as JSON: the files, the run, and what is withheld, behind, unproven or set aside",
      )
      .addHelpText(
        "after",
        `
The notebook needs Python with duckdb and pandas, and the archive at its present path. Once the run
has more rows, or the archive is elsewhere, write run.duckdb anew:
  runvault export --views --with-analytics --run INSTANCE/RUN --out DIR/run.duckdb --force

Examples:
  runvault notebook research
  runvault notebook research alpha-1/2022-01-01-001 && jupyter lab research/one-run.ipynb
`,
      ),
  run: notebook,
});

async function notebook(values: z.output<typeof schema>, session: Session): Promise<number> {
  const { writeNotebook } = await import("../notebook/write-notebook.ts");
  return await writeNotebook(values, session);
}
