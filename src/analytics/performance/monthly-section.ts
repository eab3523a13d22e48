import { figure, noFigure } from "../figure.ts";
import { groupsOf, instantOf, type MacroRow, macroRows, ns } from "../section/macro-rows.ts";
import type { FigurePart, Section } from "../section/section.ts";
import { seriesConventions } from "./series-conventions.ts";

/** The return of each calendar month of the sessions. */
export const monthlySection: Section = {
  name: "monthly",
  title: "Monthly returns",
  tables: ["equity", "events"],
  isWanted: () => true,
  conventions: (options) =>
    `compounded, the first and the last month may be partial, ${seriesConventions(options)}`,
  read: async (run) => {
    const rows = await macroRows(run, {
      macro: "monthly",
      withTotal: true,
      select: `year, month, ret, n, is_partial, ${ns("from_ts")}, ${ns("to_ts")}`,
    });
    return { groups: groupsOf(rows, (own) => ({ figures: {}, parts: own.map(partOf) })), notes: [] };
  },
};

function partOf({ year, month, ret, n, is_partial, from_ts, to_ts }: MacroRow): FigurePart {
  const convention = is_partial === true ? "compounded, partial month" : "compounded";
  return {
    by: "month",
    key: `${String(year).padStart(4, "0")}-${String(month).padStart(2, "0")}`,
    figures: {
      return:
        ret === null
          ? noFigure("no rows in this month")
          : figure(Number(ret), {
              ...{ unit: "ratio", convention, n: Number(n), from: instantOf(from_ts), to: instantOf(to_ts) },
            }),
    },
  };
}
