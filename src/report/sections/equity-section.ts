import { spanText as durationText } from "../../analytics/render/figure-text.ts";
import { parseTime } from "../../model/time.ts";
import { equityChart } from "../charts/equity-chart.ts";
import { comparedTable } from "../page/compared-table.ts";
import { dataTable } from "../page/data-table.ts";
import { figureCell } from "../page/figure-cell.ts";
import { type Html, html } from "../page/html.ts";
import { instantText } from "../page/time-text.ts";
import { type Curve, milliseconds } from "../read/read-curves.ts";
import {
  absences,
  chartRun,
  empty,
  notes,
  overPanels,
  type PageParts,
  type PageSection,
  runHead,
  runNotes,
} from "./page-section.ts";
import { type Group, groupOf, isSameKey, type Panel, type ReportedRun, sectionOf } from "./reported.ts";

/** Equity, and how far it was below its highest so far. */
export const equitySection: PageSection = {
  id: "equity",
  title: "Equity and drawdown",
  render: async ({ reported, panels, drawings }: PageParts) => {
    const { runs } = reported;
    const absent = absences(runs, "performance");
    const drawn = panels.filter((panel) => runs.some((run) => curveOf(panel, run) !== undefined));
    if (drawn.length === 0) return empty(absent[0] ?? "no equity rows");
    const isOnly = runs.length === 1;
    const body = await overPanels(drawn, async (panel) => {
      const [only] = panel.members;
      const ranked = panel.members.map(({ run, key }) => ({
        run,
        parts: groupOf(run.told, "drawdowns", key)?.parts ?? [],
      }));
      const chart = await equityChart({
        currency: panel.currency,
        runs: runs.map((run) => ({ ...chartRun(run), ...linesOf(panel, run) })),
        drawdowns: isOnly ? ranked[0]!.parts.map(drawdownOf) : [],
        note: `Every equity row, marked to market; deposits and withdrawals are steps of equity, not drawdowns. ${isOnly ? "Drawdowns are numbered as in the table" : "Drawdowns in the table"}: ${sectionOf(only!.run.told, "drawdowns")?.conventions ?? "by sessions"}.`,
      });
      return html`${drawings.add(chart)}${isOnly ? drawdownTable(ranked[0]!.parts) : comparedDrawdowns(ranked)}`;
    });
    return html`${body}${notes(absent)}${runNotes(runs, ({ told }) => sectionOf(told, "performance")?.notes ?? [])}`;
  },
};

function curveOf({ members }: Panel, run: ReportedRun): Curve | undefined {
  const key = members.find((member) => member.run === run)?.key;
  return key === undefined ? undefined : run.read.curves.find((own) => isSameKey(own, key));
}

function linesOf(panel: Panel, run: ReportedRun) {
  const { times, upper, lower } = curveOf(panel, run)?.lines ?? noPoints;
  return { times, equity: upper, drawdown: lower };
}

const none = new Float64Array();
const noPoints = { times: none, upper: none, lower: none };

type Part = Group["parts"][number];

function drawdownOf({ figures: { depth, duration, to_recovery } }: Part) {
  const at = (text: string) => milliseconds(parseTime(text));
  const isOpen = to_recovery?.value === null;
  return {
    depth: Number(depth?.value ?? 0),
    peak: depth?.value === null || depth === undefined ? 0 : at(depth.from),
    trough: depth?.value === null || depth === undefined ? 0 : at(depth.to),
    recovery: isOpen || duration === undefined || duration.value === null ? null : at(duration.to),
  };
}

function drawdownTable(parts: readonly Part[]): Html {
  if (parts.length === 0) return html`<p class="note">No drawdown.</p>\n`;
  return dataTable({
    caption: "The deepest drawdowns",
    columns: [
      { title: "Rank" },
      { title: "Depth", isNumber: true },
      { title: "Peak" },
      { title: "Trough" },
      { title: "Recovery" },
      { title: "Lasted", isNumber: true },
      { title: "Points", isNumber: true },
    ],
    rows: parts.map((part) => {
      const { depth, peak, trough, recovery, lasted, points } = cellsOf(part);
      return [part.key, depth, peak, trough, recovery, lasted, points];
    }),
  });
}

/** The same for several runs, one column per run. */
function comparedDrawdowns(
  ranked: readonly { readonly run: ReportedRun; readonly parts: readonly Part[] }[],
): Html {
  const ranks = [...new Set(ranked.flatMap(({ parts }) => parts.map(({ key }) => key)))];
  if (ranks.length === 0) return html`<p class="note">No drawdown.</p>\n`;
  const rows = ranks.flatMap((key) => {
    const own = ranked.map(({ parts }) => parts.find((part) => part.key === key));
    const row = (name: string, of: keyof ReturnType<typeof cellsOf>) => ({
      ...{ key, name },
      cells: own.map((part) => (part === undefined ? "–" : cellsOf(part)[of])),
    });
    return [
      row("Depth", "depth"),
      row("Peak", "peak"),
      row("Trough", "trough"),
      row("Recovery", "recovery"),
      row("Lasted", "lasted"),
    ];
  });
  return comparedTable({
    caption: "The deepest drawdowns",
    head: "Rank",
    runs: ranked.map(({ run }) => runHead(run, false)),
    rows,
  });
}

function cellsOf({ figures: { depth, duration, points, to_recovery } }: Part) {
  const text = (at: string) => instantText(parseTime(at));
  const isKnown = depth !== undefined && depth.value !== null;
  const isOpen = to_recovery?.value === null || duration === undefined || duration.value === null;
  return {
    depth: depth === undefined ? "–" : html`<span class="loss">${figureCell("depth", depth)}</span>`,
    peak: isKnown ? text(depth.from) : "–",
    trough: isKnown ? text(depth.to) : "–",
    recovery: isOpen ? "not recovered" : text(duration.to),
    lasted: duration === undefined || duration.value === null ? "–" : durationText(Number(duration.value)),
    points: points === undefined ? "–" : figureCell("points", points),
  };
}
