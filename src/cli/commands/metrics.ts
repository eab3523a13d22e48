import type { Command } from "commander";
import { runArgumentHelp } from "../../model/run-argument.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { figureOptions } from "../options/figure-options.ts";
import { type MetricsValues, metricsSchema, refuseWrongFigures } from "../options/metrics-values.ts";
import { runsNamed } from "../options/runs-named.ts";
import type { Session } from "../process/session.ts";

/** `runvault metrics INSTANCE/RUN…` */
export const metricsCommand = commandEntry({
  schema: metricsSchema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    figureOptions(
      command
        .description(
          "Computes the figures of runs: returns and risk, drawdowns, months, rolling windows, trades, execution and " +
            "factors. Several runs are shown side by side. docs/metrics.md has every formula, and where other libraries differ.",
        )
        .argument("<runs...>", runArgumentHelp),
    )
      .option("--json", "print one JSON document; `runvault schema metrics` prints its schema")
      .addHelpText(
        "after",
        `
Examples:
  runvault metrics alpha-1/2022-01-01-001
  runvault metrics alpha-1/2022-01-01-001 alpha-1/2022-01-02-001 --session "America/New_York 17:00"
  runvault metrics alpha-1/2022-01-01-001 --benchmark BTCUSDT --fill --rf 2%
  runvault metrics alpha-1/2022-01-01-001 --json | jq '.runs[].sections[0].groups[].figures.sharpe'
`,
      ),
  run: metrics,
});

async function metrics(values: MetricsValues, session: Session): Promise<number> {
  refuseWrongFigures(values);
  const runs = await runsNamed(values.runs, values.archive, session);
  const { printMetrics } = await import("../metrics/print-metrics.ts");
  return await printMetrics(runs, values, session);
}
