import { spanText as durationText } from "../../analytics/render/figure-text.ts";
import { parseTime } from "../../model/time.ts";
import { equityChart } from "../charts/equity-chart.ts";
import { dataTable } from "../page/data-table.ts";
import { figureCell } from "../page/figure-cell.ts";
import { type Html, html } from "../page/html.ts";
import { instantText } from "../page/time-text.ts";
import { milliseconds } from "../read/read-curves.ts";
import { absences, empty, notes, overPanels, type PageParts, type PageSection } from "./page-section.ts";
import { type Group, groupOf, isSameKey, type Panel, sectionOf } from "./reported.ts";

/** Equity, and how far it was below its highest. */
export const equitySection: PageSection = {
  id: "equity",
  title: "Equity and drawdown",
  render: async ({ reported, panels, drawings }: PageParts) => {
    const { runs } = reported;
    const absent = absences(runs, "performance");
    const drawn = panels.filter((panel) => curvesOf(panel).length > 0);
    if (drawn.length === 0) return empty(absent[0] ?? "no equity rows");
    const body = await overPanels(drawn, async (panel) => {
      const curves = curvesOf(panel);
      const [only] = panel.members;
      const isOnly = panel.members.length === 1;
      const drawdowns = isOnly ? (groupOf(only!.run.told, "drawdowns", only!.key)?.parts ?? []) : [];
      const chart = await equityChart({
        currency: panel.currency,
        runs: curves.map(({ name, curve }) => ({
          name,
          times: curve.lines.times,
          equity: curve.lines.upper,
          drawdown: curve.lines.lower,
        })),
        drawdowns: drawdowns.map(drawdownOf),
        note: `Every equity row, marked to market. ${isOnly ? "Drawdowns are numbered as in the table" : "Drawdowns in the tables"}: ${sectionOf(only!.run.told, "drawdowns")?.conventions ?? "by sessions"}.`,
      });
      const tables = panel.members.map(({ run, key }) => {
        const parts = groupOf(run.told, "drawdowns", key)?.parts ?? [];
        const of = isOnly ? "" : ` of ${run.label} ${run.name}`;
        return parts.length === 0
          ? html`<p class="note">No drawdown${of}.</p>\n`
          : drawdownTable(`The deepest drawdowns${of}`, parts);
      });
      return html`${drawings.add(chart)}${tables}`;
    });
    const told = runs.flatMap((run) =>
      (sectionOf(run.told, "performance")?.notes ?? []).map((note) =>
        runs.length === 1 ? note : `${run.label} ${note}`,
      ),
    );
    return html`${body}${notes([...absent, ...told])}`;
  },
};

function curvesOf({ members }: Panel) {
  return members.flatMap(({ run, key }) => {
    const curve = run.read.curves.find((own) => isSameKey(own, key));
    const name = members.length === 1 ? run.name : `${run.label} ${run.name}`;
    return curve === undefined ? [] : [{ name, curve }];
  });
}

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

function drawdownTable(caption: string, parts: readonly Part[]): Html {
  return dataTable({
    caption,
    columns: [
      { title: "Rank" },
      { title: "Depth", isNumber: true },
      { title: "Peak" },
      { title: "Trough" },
      { title: "Recovery" },
      { title: "Lasted", isNumber: true },
      { title: "Points", isNumber: true },
    ],
    rows: parts.map(({ key, figures: { depth, duration, points, to_recovery } }) => {
      const text = (at: string) => instantText(parseTime(at));
      const isOpen = to_recovery?.value === null;
      return [
        key,
        depth === undefined ? "–" : html`<span class="loss">${figureCell("depth", depth)}</span>`,
        depth === undefined || depth.value === null ? "–" : text(depth.from),
        depth === undefined || depth.value === null ? "–" : text(depth.to),
        isOpen || duration === undefined || duration.value === null ? "not recovered" : text(duration.to),
        duration === undefined || duration.value === null ? "–" : durationText(Number(duration.value)),
        points === undefined ? "–" : figureCell("points", points),
      ];
    }),
  });
}
