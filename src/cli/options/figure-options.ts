import { type Command, Option } from "commander";
import { fillOrderChoices } from "../../analytics/trades/fill-columns.ts";
import { groupings } from "../../analytics/trades/trade.ts";
import { archiveOption } from "./archive-option.ts";
import { instrumentsOption } from "./instruments-option.ts";
import { allowIncompleteOption } from "./reader-options.ts";

/** Declares the options of `metrics` and `report`: which archive, and how figures are computed. */
export function figureOptions(command: Command): Command {
  return command
    .addOption(archiveOption())
    .addOption(
      new Option(
        "--session <session>",
        'the period of one return: a day in utc, or in a time zone from one time of day to the next, such as "America/New_York 17:00"; bars: from one equity row to the next',
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
      new Option("--base <base>", "starting value of the series: the deposits, or the first session's equity")
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
        "yearly Sharpe ratio that the probabilistic one is compared with",
      ).default("0"),
    )
    .addOption(
      new Option("--omega-return <rate>", "yearly return above which Omega counts a gain").default("0"),
    )
    .addOption(
      new Option(
        "--group <group>",
        "what counts as one trade: from flat to flat, by closing order, or a single match",
      )
        .choices(groupings)
        .default("flat"),
    )
    .addOption(
      new Option(
        "--fill-order <order>",
        "order of fills that share an instant; auto takes the one in which the books balance",
      )
        .choices(fillOrderChoices)
        .default("auto"),
    )
    .option(
      "--rates <file>",
      "also all currencies together: a CSV file with the columns timestamp, currency, base and rate",
    )
    .option("--window <n>", "also the Sharpe ratio and volatility of rolling windows of N returns")
    .addOption(
      new Option(
        "--book-age <time>",
        "maximum age of the order book for the slippage of a fill against the mid price, such as 500ms, 5s or 2m",
      ).default("1m"),
    )
    .addOption(
      new Option(
        "--horizons <bars>",
        "after how many bars prices are compared with a factor's value, in a list such as 1,5,20",
      ).default("1,5,20"),
    )
    .addOption(instrumentsOption())
    .addOption(allowIncompleteOption())
    .addOption(
      new Option("--memory <size>", "memory to use before spilling to disk")
        .env("RUNVAULT_MEMORY")
        .default("1GB"),
    );
}
