import { figureLabel } from "../../analytics/render/figure-text.ts";
import { dataTable } from "../page/data-table.ts";
import { figureCell, reasonsOf } from "../page/figure-cell.ts";
import { allNames, reasons } from "../page/figures-table.ts";
import { type Html, html } from "../page/html.ts";
import type { Group } from "./reported.ts";

export type Part = Group["parts"][number];

/** Rows that a table has; what is beyond is said. */
const most = 60;

/**
 * A table of the parts of a group, a row a part and a column a figure. Without those of which no figure is known: they
 * are told by their reasons alone.
 */
export function partTable(caption: string, head: string, parts: readonly Part[]): Html {
  if (parts.length === 0) return html``;
  const known = parts.filter(({ figures }) => Object.values(figures).some(({ value }) => value !== null));
  const names = allNames(parts);
  const told = reasonsOf(
    parts.flatMap(({ key, figures }) =>
      Object.entries(figures).map(([name, figure]) => ({ name, of: "", key, figure })),
    ),
  );
  if (known.length === 0) return html`<p class="note">${caption}: ${told.join("; ")}.</p>\n`;
  const table = dataTable({
    caption,
    columns: [{ title: head }, ...names.map((name) => ({ title: figureLabel(name), isNumber: true }))],
    rows: known
      .slice(0, most)
      .map(({ key, figures }) => [
        key,
        ...names.map((name) => (figures[name] === undefined ? "–" : figureCell(name, figures[name]))),
      ]),
  });
  const left = known.length > most ? [`The first ${most} of ${known.length}.`] : [];
  return html`${table}${reasons([...left, ...told])}`;
}

/** A figure of a part as a number; null where there is none. */
export function numberOf({ figures }: Part, name: string): number | null {
  const value = figures[name]?.value ?? null;
  return value === null ? null : Number(value);
}
