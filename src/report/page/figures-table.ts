import type { Figure } from "../../analytics/figure.ts";
import { figureLabel } from "../../analytics/render/figure-text.ts";
import { dataTable } from "./data-table.ts";
import { figureCell, reasonsOf } from "./figure-cell.ts";
import { type Html, type HtmlValue, html, nothing } from "./html.ts";

/** Figures by their name. */
export type Figures = Readonly<Record<string, Figure>>;

/** A run, or a part of one, whose figures are a column. */
export interface FiguresColumn {
  readonly title: HtmlValue;
  /** The same for a sentence; empty if there is only one column. */
  readonly name: string;
  readonly figures: Figures;
}

/**
 * A row per figure, a column per run, with the reasons for `n/a`; for a single run a list in columns. Shows only names that
 * any column has.
 */
export function figuresTable(
  caption: string,
  columns: readonly FiguresColumn[],
  names: readonly string[] = allNames(columns),
): Html {
  const known = names.filter((name) => columns.some(({ figures }) => figures[name] !== undefined));
  const [only] = columns;
  const table =
    columns.length === 1
      ? figuresList(only!.figures, known)
      : dataTable({
          caption,
          isCaptionHidden: true,
          className: "data figures",
          columns: [{ title: "Figure" }, ...columns.map(({ title }) => ({ title, isNumber: true }))],
          rows: known.map((name) => [
            figureLabel(name),
            ...columns.map(({ figures }) => {
              const figure = figures[name];
              return figure === undefined ? "–" : figureCell(name, figure);
            }),
          ]),
        });
  const figures = columns.flatMap((column) =>
    known.flatMap((name) => {
      const figure = column.figures[name];
      return figure === undefined ? [] : [{ name, of: column.name, figure }];
    }),
  );
  return html`${table}${reasons(reasonsOf(figures))}`;
}

function figuresList(figures: Figures, names: readonly string[]): Html {
  const items = names.map((name) => {
    const figure = figures[name]!;
    return html`<div><dt>${figureLabel(name)}</dt><dd>${figureCell(name, figure)}${unitOf(figure)}</dd></div>\n`;
  });
  return html`<dl class="list">\n${items}</dl>\n`;
}

/** The currency of money; the figure's text or name has other units. */
function unitOf(figure: Figure): Html {
  const isMoney = figure.value !== null && /^[A-Z0-9]{2,12}\b/.test(figure.unit);
  return isMoney ? html`<span class="unit"> ${figure.unit}</span>` : nothing;
}

/** Every name that a column has, in the order of the first that has it. */
export function allNames(columns: readonly { readonly figures: Figures }[]): readonly string[] {
  return [...new Set(columns.flatMap(({ figures }) => Object.keys(figures)))];
}

export function reasons(lines: readonly string[]): Html {
  return html`${lines.map((line) => html`<p class="note">${line}</p>\n`)}`;
}
