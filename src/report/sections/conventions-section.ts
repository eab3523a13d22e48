import type { Figure } from "../../analytics/figure.ts";
import { figureLabel } from "../../analytics/render/figure-text.ts";
import { grouped } from "../../model/text/number-text.ts";
import { parseTime } from "../../model/time.ts";
import { dataTable } from "../page/data-table.ts";
import { figureCell, reasonsOf } from "../page/figure-cell.ts";
import { allNames, reasons } from "../page/figures-table.ts";
import { type Html, html } from "../page/html.ts";
import { spanText } from "../page/time-text.ts";
import { empty, overPanels, type PageParts, type PageSection, runHead } from "./page-section.ts";
import { groupOf, type Panel } from "./reported.ts";

/** Every figure with how it was computed, of how many values, and over which time. */
export const conventionsSection: PageSection = {
  id: "conventions",
  title: "All figures and their conventions",
  render: async ({ reported: { runs }, panels }: PageParts) => {
    if (panels.length === 0) return empty("no figures");
    const body = await overPanels(panels, (panel) => {
      const tables = runs[0]!.told.sections.map(({ name, title, conventions }) =>
        sectionTable(panel, name, title, conventions),
      );
      return html`${tables}`;
    });
    return html`${body}<p class="note">docs/metrics.md has the formula of every figure. n is the number of values.</p>\n`;
  },
};

function sectionTable({ members }: Panel, name: string, title: string, conventions: string): Html {
  const own = members.map(({ run, key }) => ({ run, figures: groupOf(run.told, name, key)?.figures ?? {} }));
  const names = allNames(own);
  if (names.length === 0) return html``;
  const isOnly = own.length === 1;
  const known = (figure: string) =>
    own.flatMap(({ figures }) => figures[figure] ?? []).find(({ value }) => value !== null);
  const spans = (figure: string) =>
    [...new Set(own.map(({ figures }) => figures[figure]).flatMap(spanOf))].join("; ");
  const all = new Set(names.map(spans).filter((text) => text !== ""));
  const isOneSpan = all.size <= 1;
  const table = dataTable({
    caption: `${title}: ${conventions}`,
    columns: [
      { title: "Figure" },
      ...own.map(({ run }) => ({ title: isOnly ? "Value" : runHead(run, false), isNumber: true })),
      { title: "Unit" },
      { title: "Convention", isText: true },
      { title: "n", isNumber: true },
      ...(isOneSpan ? [] : [{ title: "Over", isText: true }]),
    ],
    rows: names.map((figure) => {
      const found = known(figure);
      const cells = own.map(({ figures }) =>
        figures[figure] === undefined ? "–" : figureCell(figure, figures[figure]),
      );
      if (found === undefined || found.value === null)
        return [figureLabel(figure), ...cells, "–", "–", "–", ...(isOneSpan ? [] : ["–"])];
      const counts = own.flatMap(({ figures }) => {
        const one = figures[figure];
        return one === undefined || one.value === null ? [] : [grouped(one.n)];
      });
      return [
        ...[figureLabel(figure), ...cells, found.unit, found.convention],
        [...new Set(counts)].join(" / "),
        ...(isOneSpan ? [] : [spans(figure)]),
      ];
    }),
  });
  const figures = own.flatMap(({ run, figures }) =>
    Object.entries(figures).map(([one, figure]) => ({ name: one, of: isOnly ? "" : run.label, figure })),
  );
  const over = isOneSpan ? [...all].map((span) => html`<p class="note">Over ${span}.</p>\n`) : [];
  return html`${table}${over}${reasons(reasonsOf(figures))}`;
}

function spanOf(figure: Figure | undefined): readonly string[] {
  if (figure === undefined || figure.value === null) return [];
  return [spanText(parseTime(figure.from), parseTime(figure.to))];
}
