import { doubleText, figureOf, groupsOf, macroRows, ns, yearArguments } from "../section/macro-rows.ts";
import type { Section } from "../section/section.ts";
import { benchmarkArguments, benchmarkNotes } from "./benchmark-prices.ts";
import { flowNotes } from "./flow-notes.ts";
import { seriesConventions, yearConventions } from "./series-conventions.ts";

/** The figures of the return series, and those against a benchmark. */
export const performanceSection: Section = {
  name: "performance",
  title: "Performance",
  tables: ["equity", "events"],
  alsoReads: ({ benchmark }) => (benchmark?.kind === "symbol" ? ["bars"] : []),
  isWanted: () => true,
  conventions: (options) => {
    const { benchmark } = options;
    const against =
      benchmark === null
        ? []
        : [`benchmark ${benchmark.kind === "symbol" ? benchmark.symbol : benchmark.prices.file}`];
    return [seriesConventions(options), yearConventions(options), ...against].join(", ");
  },
  read: async (run) => {
    const rows = await macroRows(run, {
      macro: "performance",
      withTotal: true,
      select: `metric, value, reason, unit, convention, n, ${ns("from_ts")}, ${ns("to_ts")}`,
      more: {
        ...yearArguments(run.options),
        psr_benchmark: doubleText(run.options.psrBenchmark),
        omega_return: doubleText(run.options.omegaReturn),
        ...benchmarkArguments(run),
      },
    });
    const groups = groupsOf(rows, (own) => ({
      figures: Object.fromEntries(own.map((row) => [String(row.metric), figureOf(row)])),
      parts: [],
    }));
    return { groups, notes: [...(await flowNotes(run)), ...(await benchmarkNotes(run))] };
  },
};
