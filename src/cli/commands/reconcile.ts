import { type Command, Option } from "commander";
import { matchings } from "../../analytics/against/match-runs.ts";
import { fillOrderChoices } from "../../analytics/trades/fill-columns.ts";
import { RunvaultError } from "../../model/error.ts";
import { runArgumentHelp } from "../../model/run-argument.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { archiveOption } from "../options/archive-option.ts";
import { instrumentsOption } from "../options/instruments-option.ts";
import { allowIncompleteOption } from "../options/reader-options.ts";
import { accountings, type ReconcileValues, reconcileSchema } from "../options/reconcile-values.ts";
import { runsNamed } from "../options/runs-named.ts";
import type { Session } from "../process/session.ts";

/** `runvault reconcile INSTANCE/RUN…` */
export const reconcileCommand = commandEntry({
  schema: reconcileSchema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Checks the figures that a gateway reported for runs against its own rows: equity against fills, money that " +
          "moved and bars, profit, positions, orders against fills, figures, and the run's summary. With --against, compares " +
          "two runs instead, such as a live one with its backtest. Exit status 4 on a break or a difference.",
      )
      .argument("<runs...>", runArgumentHelp)
      .addOption(archiveOption())
      .option(
        "--tolerance <amount>",
        "largest difference that does not count as a break (default: 0; for inverse contracts 0.000000001 a fill)",
      )
      .addOption(
        new Option(
          "--accounting <which>",
          "how cash and position_value are kept; auto finds out which of the two (default: auto)",
        ).choices(accountings),
      )
      .addOption(
        new Option(
          "--fill-order <order>",
          "order of fills that share an instant; auto says which holds (default: auto)",
        ).choices(fillOrderChoices),
      )
      .addOption(instrumentsOption())
      .option("--against <run>", "compare with this run, INSTANCE/RUN, in place of the checks")
      .option("--against-archive <dir>", "the archive of the other run (default: the same)")
      .addOption(
        new Option(
          "--match <by>",
          "how fills are matched: by client order id, or the nearest in time of a symbol and side (default: order)",
        ).choices(matchings),
      )
      .option(
        "--within <time>",
        "largest time difference between matched fills (default: 5s where matched by time, else any)",
      )
      .option(
        "--price-within <bp>",
        "largest price difference between matched fills, in basis points (default: any where matched by time, else 0)",
      )
      .option(
        "--session <session>",
        'the end of the day at which equity is compared: utc, or a time zone, such as "America/New_York 17:00" (default: utc)',
      )
      .addOption(allowIncompleteOption())
      .addOption(
        new Option("--memory <size>", "memory of DuckDB before it spills to disk")
          .env("RUNVAULT_MEMORY")
          .default("1GB"),
      )
      .option("--json", "report as JSON; `runvault schema reconcile` describes it")
      .addHelpText(
        "after",
        `
A check HOLDS, BREAKS, or is NOT CHECKED with the reason: missing rows
never make one hold. Tables that are not proven are refused with exit status 4, unless
--allow-incomplete is given.

Examples:
  runvault reconcile alpha-1/2022-01-01-001
  runvault reconcile alpha-1/2022-01-01-001 --instruments instruments.yaml --json
  runvault reconcile live/2022-01-01-001 --against backtest/2022-01-01-001
  runvault reconcile live/1 --against bt/7 --against-archive /data/bt
  runvault reconcile live/1 --against bt/7 --match time --within 2s
`,
      ),
  run: reconcileRuns,
});

const ofComparison = ["againstArchive", "match", "within", "priceWithin", "session"] as const;
const ofChecks = ["accounting", "fillOrder"] as const;

async function reconcileRuns(values: ReconcileValues, session: Session): Promise<number> {
  const runs = await runsNamed(values.runs, values.archive, session);
  const { against } = values;
  const unwanted = (against === undefined ? ofComparison : ofChecks).find(
    (name) => values[name] !== undefined,
  );
  if (unwanted !== undefined) {
    const option = `--${unwanted.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    throw new RunvaultError(
      "invalid_argument",
      `${option} has no effect ${against === undefined ? "without" : "with"} --against`,
      {
        hint: against === undefined ? "Give the other run by --against, or leave it out." : "Leave it out.",
      },
    );
  }
  if (against === undefined) {
    const { tellChecks } = await import("../reconcile/tell-checks.ts");
    return await tellChecks(runs, values, session);
  }
  const [run, ...more] = runs;
  if (more.length > 0) {
    throw new RunvaultError("invalid_argument", `--against compares one run, not ${runs.length}`, {
      hint: "Call it once for each of them.",
    });
  }
  const { tellComparison } = await import("../reconcile/tell-comparison.ts");
  const [other] = await runsNamed([against], values.againstArchive ?? values.archive, session);
  return await tellComparison(run!, other!, values, session);
}
