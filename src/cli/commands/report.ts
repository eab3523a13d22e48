import type { Command } from "commander";
import { runArgumentHelp } from "../../model/run-argument.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { figureOptions } from "../options/figure-options.ts";
import { refuseWrongFigures } from "../options/metrics-values.ts";
import { type ReportValues, reportSchema } from "../options/report-values.ts";
import { runsNamed } from "../options/runs-named.ts";
import type { Session } from "../process/session.ts";

/** `runvault report INSTANCE/RUN…` */
export const reportCommand = commandEntry({
  schema: reportSchema,
  howToGoOn: "Run the same command again: the page was not written.",
  declare: (command: Command) =>
    figureOptions(
      command
        .description(
          "Writes a page about a run: figures, charts, trades, reconciliation, and the proof of its data. One HTML file, " +
            "without scripts, that needs no other file. Several runs are compared on the same axes.",
        )
        .argument("<runs...>", runArgumentHelp)
        .option("--out <file>", "file to write (default: INSTANCE-RUN.html in the current folder)")
        .option("--specs <dir>", "also write each chart as a Vega-Lite spec, with its data, for notebooks")
        .option("--force", "replace files that are there already")
        .option("--no-reconcile", "leave out reconciliation, the slowest part for millions of rows"),
    )
      .option("--json", "report what was written as JSON")
      .addHelpText(
        "after",
        `
Tables that are not proven are refused with exit status 4, unless --allow-incomplete: then the page
says so at its top. The same archive and options give the same bytes, but for the last line, which
says when the page was made.

Examples:
  runvault report alpha-1/latest
  runvault report alpha-1/2022-01-01-001 alpha-1/2022-01-02-001 --out both.html --fill
  runvault report alpha-1/2022-01-01-001 --out run.html --session bars --specs charts
`,
      ),
  run: report,
});

async function report(values: ReportValues, session: Session): Promise<number> {
  refuseWrongFigures(values);
  const runs = await runsNamed(values.runs, values.archive, session);
  const { writeReport } = await import("../report/write-report.ts");
  return await writeReport(runs, values, session);
}
