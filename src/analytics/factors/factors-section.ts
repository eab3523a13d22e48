import { literal } from "../../duckdb/sql.ts";
import { writeInstrumentValues } from "../instruments/write-instrument-values.ts";
import { figureOf, groupsOf, type MacroRow, ns } from "../section/macro-rows.ts";
import type { FigurePart, MeasuredRun, Section } from "../section/section.ts";
import { sampleFactors } from "./sampled-factors.ts";

/** The values of factors, and prices after them. */
export const factorsSection: Section = {
  name: "factors",
  title: "Factors",
  tables: ["factors", "bars"],
  isWanted: () => true,
  conventions: ({ horizons }) =>
    `returns from the close at a value's time, over ${horizons.join(", ")} bars; rank IC across symbols at times when 5 or more have both, otherwise over time; quantiles per time`,
  read: async (run) => {
    const { instruments, horizons } = run.options;
    if (instruments !== null) await writeInstrumentValues(run.connection, run.run, instruments);
    await using _sampled = await sampleFactors(run);
    const coverage = await macro(run, "factor_coverage", "symbol, venue");
    if (coverage.length === 0) return { groups: [], notes: ["no factors"] };
    const given = `, horizons := [${horizons.join(", ")}]`;
    const coefficients = await macro(run, "factor_ic", "horizon, symbol, venue", given);
    const quantiles = await macro(run, "factor_quantiles", "horizon, quantile", given);
    const rows = [
      ...parts(coverage, (row) => (row.symbol === null ? ofFactor : ofSymbol)),
      ...parts(coefficients, (row) => (row.symbol === null ? [across] : [through])),
      ...parts(quantiles, (row) => (row.quantile === null ? [spread] : [quantile])),
    ];
    const groups = groupsOf(
      rows.map(({ portfolio, part }) => ({ account: "", portfolio, currency: "", part })),
      (own) => ({ figures: {}, parts: own.map(({ part }) => part as FigurePart) }),
    );
    return { groups, notes: [] };
  },
};

/** A kind of part: its name, the metrics of its figures, and the columns of its key. */
interface PartKind {
  readonly by: string;
  readonly figures: Readonly<Record<string, string>>;
  readonly key: (row: MacroRow) => readonly unknown[];
}

const same = (...names: string[]) => Object.fromEntries(names.map((name) => [name, name]));
const bars = (row: MacroRow) => `${row.horizon} ${Number(row.horizon) === 1 ? "bar" : "bars"}`;

const ofFactor: readonly PartKind[] = [
  {
    by: "factor",
    figures: same("samples", "coverage", "nan_values", "infinite_values"),
    key: ({ factor }) => [factor],
  },
  {
    by: "distribution",
    figures: same("minimum", "p05", "median", "p95", "maximum"),
    key: ({ factor }) => [factor],
  },
  {
    by: "moments",
    figures: same("mean", "deviation", "skewness", "kurtosis"),
    key: ({ factor }) => [factor],
  },
];
const ofSymbol: readonly PartKind[] = [
  {
    by: "factor_symbol",
    figures: same("coverage", "autocorrelation"),
    key: ({ factor, symbol, venue }) => [factor, symbol, venue],
  },
];
const across: PartKind = {
  by: "ic_across_symbols",
  figures: same("ic", "ic_deviation", "ic_ratio", "ic_t", "ic_positive"),
  key: (row) => [row.factor, bars(row)],
};
const through: PartKind = {
  by: "ic_through_time",
  figures: same("ic", "ic_t"),
  key: (row) => [row.factor, bars(row), row.symbol, row.venue],
};
const spread: PartKind = {
  by: "quantiles",
  figures: { spread: "quantile_spread", rank_autocorrelation: "rank_autocorrelation" },
  key: (row) => [row.factor, bars(row)],
};
const quantile: PartKind = {
  by: "quantile",
  figures: { mean_return: "quantile_return", turnover: "quantile_turnover" },
  key: (row) => [row.factor, bars(row), `Q${row.quantile}`],
};

/** The parts of the rows, in the order of the rows, kind by kind. */
function parts(
  rows: readonly MacroRow[],
  kindsOf: (row: MacroRow) => readonly PartKind[],
): readonly { readonly portfolio: unknown; readonly part: FigurePart }[] {
  const found = new Map<
    PartKind,
    Map<string, { portfolio: unknown; key: string; byMetric: Map<unknown, MacroRow> }>
  >();
  for (const row of rows) {
    for (const kind of kindsOf(row)) {
      const own = found.get(kind) ?? new Map();
      found.set(kind, own);
      const words = kind.key(row);
      const id = JSON.stringify([row.portfolio, ...words.map(String)]);
      const part = own.get(id) ?? {
        portfolio: row.portfolio,
        key: words.filter((word) => word !== "").join(" "),
        byMetric: new Map(),
      };
      own.set(id, part);
      part.byMetric.set(row.metric, row);
    }
  }
  return [...found].flatMap(([{ by, figures }, own]) =>
    [...own.values()].map(({ portfolio, key, byMetric }) => ({
      portfolio,
      part: {
        by,
        key,
        figures: Object.fromEntries(
          Object.entries(figures).map(([name, metric]) => [name, figureOf(byMetric.get(metric)!)]),
        ),
      },
    })),
  );
}

async function macro(
  { connection, run }: MeasuredRun,
  name: string,
  by: string,
  more = "",
): Promise<readonly MacroRow[]> {
  const result = await connection.runAndReadAll(`
    SELECT portfolio, factor, ${by}, metric, value, reason, unit, convention, n, ${ns("from_ts")}, ${ns("to_ts")}
    FROM ${name}(${literal(run.instanceId)}, ${literal(run.runId)}${more})`);
  return result.getRowObjects();
}
