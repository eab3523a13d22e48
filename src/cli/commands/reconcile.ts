import { type Command, Option } from "commander";
import { z } from "zod";
import { exit } from "../../model/error.ts";
import { parseRun, runArgumentHelp } from "../../model/run-argument.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { archiveOption, archiveShape } from "../options/archive-option.ts";
import { instrumentsOption } from "../options/instruments-option.ts";
import { mebibytes, nonEmpty } from "../options/option-values.ts";
import type { Session } from "../process/session.ts";

const accountings = ["auto", "spot", "margin"] as const;
const fillOrders = ["auto", "key", "trade_id"] as const;

const schema = z.object({
  ...archiveShape,
  runs: z.array(nonEmpty).min(1),
  tolerance: z
    .string()
    .regex(/^\d{1,20}(?:\.\d{1,18})?$/, "must be a decimal that is not negative, such as 0.000000001")
    .optional(),
  accounting: z.enum(accountings),
  fillOrder: z.enum(fillOrders),
  instruments: nonEmpty.optional(),
  memory: mebibytes,
});

/** `runvault reconcile INSTANCE/RUN…` */
export const reconcileCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Checks what a gateway reported of runs against the rows that it reported it by: equity against fills, money that " +
          "moved and bars, profit, positions, orders against fills, figures, and the run's summary. Exit status 4 on a break.",
      )
      .argument("<runs...>", runArgumentHelp)
      .addOption(archiveOption())
      .option(
        "--tolerance <amount>",
        "largest difference that is no break (default: 0; for inverse contracts 0.000000001 a fill)",
      )
      .addOption(
        new Option(
          "--accounting <which>",
          "how cash and position_value are kept; auto says which of the two holds",
        )
          .choices(accountings)
          .default("auto"),
      )
      .addOption(
        new Option("--fill-order <order>", "order of fills that share an instant; auto says which holds")
          .choices(fillOrders)
          .default("auto"),
      )
      .addOption(instrumentsOption())
      .addOption(
        new Option("--memory <size>", "memory of DuckDB before it spills to disk")
          .env("RUNVAULT_MEMORY")
          .default("1GB"),
      )
      .option("--json", "report as JSON; `runvault schema reconcile` describes it")
      .addHelpText(
        "after",
        `
A check HOLDS, BREAKS, or is NOT CHECKED with the reason: it never holds for want of rows.
Tables that are not proven are refused with exit status 4.

Examples:
  runvault reconcile alpha-1/2022-01-01-001
  runvault reconcile alpha-1/2022-01-01-001 --instruments instruments.yaml --json
`,
      ),
  run: reconcileRuns,
});

async function reconcileRuns(values: z.output<typeof schema>, session: Session): Promise<number> {
  const runs = values.runs.map(parseRun);
  const { openArchive } = await import("../../archive/archive.ts");
  const { exactOf } = await import("../../analytics/instruments/instrument.ts");
  const { readInstruments } = await import("../../analytics/instruments/read-instruments.ts");
  const { reconcile } = await import("../../analytics/reconcile/reconcile.ts");
  const instruments = values.instruments === undefined ? null : await readInstruments(values.instruments);
  const { report, shortfall } = await reconcile(await openArchive(values.archive), runs, {
    instruments,
    accounting: values.accounting,
    order: values.fillOrder,
    tolerance: values.tolerance === undefined ? null : exactOf(values.tolerance),
    memoryLimitMb: values.memory,
    signal: session.signal,
  });
  const { tellShortfall } = await import("../output/tell-shortfall.ts");
  await tellShortfall(shortfall, { strict: false }, session);
  if (session.json) await session.print(`${JSON.stringify(report, null, 2)}\n`);
  else {
    const { reconcileText } = await import("../output/reconcile-text.ts");
    await session.print(reconcileText(report, session.terminal.columns));
  }
  return report.runs.some(({ verdict }) => verdict === "BREAKS") ? exit.incomplete : exit.done;
}
