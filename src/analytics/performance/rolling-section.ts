import { type Figure, figure, noFigure } from "../figure.ts";
import { groupsOf, instantOf, type MacroRow, macroRows, yearArguments } from "../section/macro-rows.ts";
import type { Section } from "../section/section.ts";
import { seriesConventions, yearConventions } from "./series-conventions.ts";

/** Sharpe ratio and volatility over windows of returns; the macro `rolling` has every window. */
export const rollingSection: Section = {
  name: "rolling",
  title: "Rolling windows",
  tables: ["equity", "events"],
  isWanted: ({ window }) => window !== null,
  conventions: (options) =>
    `windows of ${options.window} returns, ${seriesConventions(options)}, ${yearConventions(options)}`,
  read: async (run) => {
    const { window } = run.options;
    const rows = await macroRows(run, {
      macro: "rolling",
      withTotal: true,
      select: "sharpe, volatility, epoch_ns(ts) AS ts",
      more: { ...yearArguments(run.options), window_size: String(window) },
    });
    const groups = groupsOf(rows, (own) => ({
      figures: {
        ...spread(own, "sharpe", "ratio, per year", window ?? 0),
        ...spread(own, "volatility", "per year", window ?? 0),
      },
      parts: [],
    }));
    return { groups, notes: [] };
  },
};

/** The lowest, the highest and the last value of all windows. */
function spread(rows: readonly MacroRow[], name: string, unit: string, window: number) {
  const values = rows.flatMap(({ [name]: value, ts }) =>
    value === null ? [] : [{ value: Number(value), ts: instantOf(ts) }],
  );
  const reason =
    rows.length < window ? `fewer than ${window} returns` : "all returns within each window are equal";
  const last = rows.at(-1);
  const of = (value: number | undefined, which: string): Figure =>
    value === undefined
      ? noFigure(reason)
      : figure(value, {
          ...{ unit, convention: `${which} of all windows of ${window}`, n: values.length },
          ...{ from: values[0]!.ts, to: values.at(-1)!.ts },
        });
  const sorted = values.map(({ value }) => value).sort((a, b) => a - b);
  return {
    [`${name}_lowest`]: of(sorted[0], "lowest"),
    [`${name}_highest`]: of(sorted.at(-1), "highest"),
    [`${name}_last`]: of(last === undefined || last[name] === null ? undefined : Number(last[name]), "last"),
  };
}
