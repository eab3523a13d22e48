import { figure, noFigure } from "../figure.ts";
import { groupsOf, instantOf, type MacroRow, macroRows, ns } from "../section/macro-rows.ts";
import type { FigurePart, Section } from "../section/section.ts";
import { seriesConventions } from "./series-conventions.ts";

const most = 5;

/** The deepest drawdowns, from the last point at the high to the first that reaches it again. */
export const drawdownsSection: Section = {
  name: "drawdowns",
  title: "Drawdowns",
  tables: ["equity", "events"],
  isWanted: () => true,
  conventions: (options) => `the ${most} deepest, peak to recovery, ${seriesConventions(options)}`,
  read: async (run) => {
    const instants = ["peak_ts", "trough_ts", "recovery_ts"].map(ns).join(", ");
    const rows = await macroRows(run, {
      macro: "drawdowns",
      withTotal: true,
      select: `rank, depth, ${instants}, seconds, points, is_open`,
    });
    const groups = groupsOf(rows, (own) => ({
      figures: {},
      parts: own.filter(({ rank }) => Number(rank) <= most).map(partOf),
    }));
    return { groups, notes: rows.length === 0 ? ["no drawdown"] : [] };
  },
};

function partOf({ rank, depth, seconds, points, is_open, ...row }: MacroRow): FigurePart {
  const peak = instantOf(row.peak_ts);
  const trough = instantOf(row.trough_ts);
  const recovery = row.recovery_ts === null ? null : instantOf(row.recovery_ts);
  const end = peak + BigInt(Math.round(Number(seconds) * 1e9));
  const n = Number(points);
  const convention = is_open === true ? "open at the end" : "peak to recovery";
  const whole = { convention, n, from: peak, to: recovery ?? end };
  const secondsOf = (span: bigint) => Number(span) / 1e9;
  return {
    by: "rank",
    key: String(rank),
    figures: {
      depth: figure(Number(depth), {
        ...{ unit: "ratio", convention: "peak to trough", n, from: peak, to: trough },
      }),
      duration: figure(Number(seconds), { ...whole, unit: "s" }),
      points: figure(n, { ...whole, unit: "points" }),
      to_trough: figure(secondsOf(trough - peak), {
        ...{ unit: "s", convention: "peak to trough", n, from: peak, to: trough },
      }),
      to_recovery:
        recovery === null
          ? noFigure("not recovered by the end")
          : figure(secondsOf(recovery - trough), {
              ...{ unit: "s", convention: "trough to recovery", n, from: trough, to: recovery },
            }),
    },
  };
}
