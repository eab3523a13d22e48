import { type Command, Option } from "commander";
import { fillOrders } from "../../analytics/trades/fill-columns.ts";
import { groupings } from "../../analytics/trades/trade.ts";
import { RunvaultError } from "../../model/error.ts";
import { parseRun, runArgumentHelp } from "../../model/run-argument.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { archiveOption } from "../options/archive-option.ts";
import { instrumentsOption } from "../options/instruments-option.ts";
import { type MetricsValues, metricsSchema } from "../options/metrics-values.ts";
import { allowIncompleteOption } from "../options/reader-options.ts";
import type { Session } from "../process/session.ts";

/** `runvault metrics INSTANCE/RUN…` */
export const metricsCommand = commandEntry({
  schema: metricsSchema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Computes the figures of runs: returns and risk, drawdowns, months, rolling windows, and trades. Several runs " +
          "stand side by side. docs/metrics.md has every formula, and where other libraries differ.",
      )
      .argument("<runs...>", runArgumentHelp)
      .addOption(archiveOption())
      .addOption(
        new Option(
          "--session <session>",
          'what one return is over: a day in utc, or in a time zone from one time of day to the next, such as "America/New_York 17:00"; bars: from one equity row to the next',
        ).default("utc"),
      )
      .option("--fill", "repeat the last equity on days without rows, for markets that never close")
      .option(
        "--periods <n>",
        "periods a year, or data to count them (default: 252 for session days, 365 with --fill)",
      )
      .addOption(new Option("--rf <rate>", "yearly risk-free rate, such as 0.02 or 2%").default("0"))
      .option("--log", "logarithms of returns instead of simple returns")
      .addOption(
        new Option(
          "--base <base>",
          "where the series begins: what was deposited, or the first session's equity",
        )
          .choices(["deposit", "first"])
          .default("deposit"),
      )
      .option(
        "--benchmark <file|symbol>",
        "prices to compare with: a CSV file with the columns timestamp and price, or a symbol of the run's bars",
      )
      .addOption(
        new Option(
          "--psr-benchmark <sharpe>",
          "yearly Sharpe ratio that the probabilistic one is held against",
        ).default("0"),
      )
      .addOption(
        new Option("--omega-return <rate>", "yearly return from which on Omega counts a gain").default("0"),
      )
      .addOption(
        new Option(
          "--group <group>",
          "what one trade is: from flat to flat, by closing order, or a single match",
        )
          .choices(groupings)
          .default("flat"),
      )
      .addOption(
        new Option(
          "--fill-order <order>",
          "order of fills that share an instant; auto takes the one in which the books balance",
        )
          .choices(["auto", ...fillOrders])
          .default("auto"),
      )
      .option(
        "--rates <file>",
        "also all currencies together: a CSV file with the columns timestamp, currency, base and rate",
      )
      .option("--window <n>", "also the Sharpe ratio and volatility of rolling windows of N returns")
      .addOption(instrumentsOption())
      .addOption(allowIncompleteOption())
      .addOption(
        new Option("--memory <size>", "memory to use before spilling to disk")
          .env("RUNVAULT_MEMORY")
          .default("1GB"),
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
  if (values.fill && values.session === "bars") {
    throw new RunvaultError("invalid_argument", "--fill adds days, and --session bars has no days", {
      hint: "Leave out one of them.",
    });
  }
  const runs = values.runs.map(parseRun);
  const { printMetrics } = await import("../metrics/print-metrics.ts");
  return await printMetrics(runs, values, session);
}
