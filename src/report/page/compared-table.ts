import { dataTable } from "./data-table.ts";
import { type Html, type HtmlValue, html, nothing } from "./html.ts";

/** A row of a comparison: one cell per run. */
export interface ComparedRow {
  /** The row's subject: rows with the same one are adjacent, and it is shown at the first. */
  readonly key: string;
  /** Which of its figures; empty if there is only one. */
  readonly name: string;
  readonly cells: readonly HtmlValue[];
}

export interface ComparedTable {
  readonly caption: string;
  readonly isCaptionHidden?: boolean;
  /** What the keys are. */
  readonly head: string;
  /** The headings of the columns, one per run. */
  readonly runs: readonly HtmlValue[];
  readonly isText?: boolean;
  readonly rows: readonly ComparedRow[];
}

/** A table of several runs, one column per run. */
export function comparedTable({ caption, isCaptionHidden, head, runs, isText, rows }: ComparedTable): Html {
  const hasNames = rows.some(({ name }) => name !== "");
  return dataTable({
    caption,
    ...(isCaptionHidden === undefined ? {} : { isCaptionHidden }),
    className: "data compared",
    columns: [
      { title: head },
      ...(hasNames ? [{ title: "Figure" }] : []),
      ...runs.map((title) => (isText ? { title, isText } : { title, isNumber: true })),
    ],
    rows: rows.map(({ key, name, cells }, index) => [
      // screen readers read the subject at every row
      rows[index - 1]?.key === key ? html`<span class="unseen">${key}</span>` : key,
      ...(hasNames ? [name] : []),
      ...cells,
    ]),
  });
}

/** Longest table that is shown open; longer ones are folded away. */
const mostSeen = 16;

/** A table, folded away under a line that names it if it is long. */
export function folded(caption: string, rows: number, table: Html): Html {
  if (rows === 0) return nothing;
  if (rows <= mostSeen) return table;
  return html`<details class="long"><summary>${caption}: ${rows} rows</summary>\n${table}</details>\n`;
}
