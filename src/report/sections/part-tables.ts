import { figureLabel } from "../../analytics/render/figure-text.ts";
import { comparedTable, folded } from "../page/compared-table.ts";
import { dataTable } from "../page/data-table.ts";
import { figureCell, reasonsOf } from "../page/figure-cell.ts";
import { allNames, reasons } from "../page/figures-table.ts";
import { type Html, html } from "../page/html.ts";
import { runHead } from "./page-section.ts";
import type { Group, ReportedRun } from "./reported.ts";

export type Part = Group["parts"][number];

/** Most rows of a table; a note says if there are more. */
const most = 60;

/**
 * A table of a group's parts, a row per part and a column per figure. Parts without any known figure are listed only
 * with their reasons.
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
  return html`${folded(caption, known.length, html`${table}${reasons([...left, ...told])}`)}`;
}

/** Parts of one run. */
export interface RunParts {
  readonly run: ReportedRun;
  readonly parts: readonly Part[];
}

/** The same for several runs: a row per figure of a part, a column per run; for a single run like `partTable`. */
export function partsTable(caption: string, head: string, runs: readonly RunParts[], isOnly: boolean): Html {
  if (isOnly) return partTable(caption, head, runs[0]?.parts ?? []);
  const all = runs.flatMap(({ parts }) => parts);
  if (all.length === 0) return html``;
  const isKnown = ({ figures }: Part) => Object.values(figures).some(({ value }) => value !== null);
  const keys = [...new Set(all.filter(isKnown).map(({ key }) => key))];
  const names = allNames(all);
  const told = reasonsOf(
    runs.flatMap(({ run, parts }) =>
      parts.flatMap(({ key, figures }) =>
        Object.entries(figures).map(([name, figure]) => ({ name, of: run.label, key, figure })),
      ),
    ),
  );
  if (keys.length === 0) return html`<p class="note">${caption}: ${told.join("; ")}.</p>\n`;
  const rows = keys.slice(0, most).flatMap((key) => {
    const own = runs.map(({ parts }) => parts.find((part) => part.key === key)?.figures ?? {});
    return names
      .filter((name) => own.some((figures) => figures[name] !== undefined))
      .map((name) => ({
        key,
        name: names.length === 1 ? "" : figureLabel(name),
        cells: own.map((figures) => (figures[name] === undefined ? "–" : figureCell(name, figures[name]))),
      }));
  });
  const table = comparedTable({ caption, head, runs: runs.map(({ run }) => runHead(run, false)), rows });
  const left = keys.length > most ? [`The first ${most} of ${keys.length}.`] : [];
  return folded(caption, rows.length, html`${table}${reasons([...left, ...told])}`);
}

/** A figure of a part as a number; null if there is none. */
export function numberOf({ figures }: Part, name: string): number | null {
  const value = figures[name]?.value ?? null;
  return value === null ? null : Number(value);
}
