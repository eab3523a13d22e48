import { z } from "zod";
import { figureSchema } from "../figure.ts";
import { fillOrderChoices } from "../trades/fill-columns.ts";
import { groupings } from "../trades/trade.ts";

/**
 * The version of the document. It changes if a key is removed or changes its meaning, not if one is added.
 */
export const metricsVersion = 1;

function key<T extends z.ZodType>(schema: T, description: string): T {
  return schema.meta({ description }) as T;
}

const figures = key(z.record(z.string(), figureSchema), "figures by their name");

const groupSchema = z.strictObject({
  account: key(z.string(), "account of the figures"),
  portfolio: key(z.string(), "portfolio of the account"),
  currency: key(z.string(), "currency of its amounts"),
  figures,
  parts: key(
    z.array(
      z.strictObject({
        by: key(z.string(), "kind of part: rank, month, symbol"),
        key: key(z.string(), "which part: 1, 2022-01, BTCUSDT"),
        figures,
      }),
    ),
    "figures of parts: one drawdown, one month, the trades of one symbol",
  ),
});

const sectionSchema = z.strictObject({
  name: key(z.string(), "name of the section: performance, drawdowns, monthly, rolling, trades"),
  title: key(z.string(), "its heading"),
  conventions: key(z.string(), "the conventions of all its figures"),
  absent: key(z.string().nullable(), "why it has no figures; null if it has"),
  notes: key(z.array(z.string()), "notes on it, a sentence each"),
  groups: key(z.array(groupSchema), "figures of each account, portfolio and currency, never added"),
});

/** What `runvault metrics --json` prints. */
export const metricsSchema = z
  .strictObject({
    version: key(z.literal(metricsVersion), "version of this document"),
    options: key(
      z.strictObject({
        session: key(z.string(), "utc, bars, or a time zone with the end of its day"),
        fill: key(z.boolean(), "whether days without rows repeat the last equity"),
        periods: key(
          z.union([z.number(), z.literal("data")]).nullable(),
          "periods a year that were requested; null for the default",
        ),
        rf: key(z.number(), "yearly risk-free rate"),
        log: key(z.boolean(), "whether returns are logarithms"),
        base: key(z.enum(["deposit", "first"]), "base point that was requested"),
        benchmark: key(z.string().nullable(), "file or symbol that runs are compared with"),
        rates: key(z.string().nullable(), "file of the rates at which currencies are added; null for none"),
        psrBenchmark: key(z.number(), "yearly Sharpe ratio that PSR is compared with"),
        omegaReturn: key(z.number(), "yearly return that Omega requires"),
        group: key(z.enum(groupings), "what counts as one trade"),
        fillOrder: key(
          z.enum(fillOrderChoices),
          "requested order of fills that share a timestamp; a note of the trades gives the order used",
        ),
        window: key(z.int().positive().nullable(), "returns of a rolling window; null for none"),
        instruments: key(z.string().nullable(), "file with facts about instruments that rows do not have"),
        bookAge: key(z.string(), "age of the oldest book that a fill is compared with: 60s"),
        horizons: key(
          z.array(z.int().positive()),
          "bars over which returns after factor values are measured",
        ),
        allowIncomplete: key(z.boolean(), "whether unproven rows count"),
      }),
      "how the figures were computed",
    ),
    runs: key(
      z.array(
        z.strictObject({
          instance: key(z.string(), "instance of the run"),
          run: key(z.string(), "id of the run"),
          state: key(z.string(), "state of the archived run"),
          until: key(
            z.string().nullable(),
            "end of the proven part of a run that goes on; null once it has ended",
          ),
          unproven: key(z.array(z.string()), "tables whose rows are not proven, with their state"),
          refused: key(
            z.array(z.string()),
            "tables whose rows are not proven, with their state: the sections that need them are absent",
          ),
          sections: key(z.array(sectionSchema), "its figures by subject"),
        }),
      ),
      "the runs, in the order given",
    ),
  })
  .meta({ title: "runvault metrics", description: "The figures of archived runs." });

export type MetricsDocument = Readonly<z.output<typeof metricsSchema>>;
export type MetricsRun = MetricsDocument["runs"][number];
export type MetricsSection = MetricsRun["sections"][number];

/** The JSON Schema of the document. */
export function metricsJsonSchema(): unknown {
  return z.toJSONSchema(metricsSchema, { target: "draft-2020-12" });
}
