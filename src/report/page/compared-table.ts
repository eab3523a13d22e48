import { dataTable } from "./data-table.ts";
import { type Html, type HtmlValue, html, nothing } from "./html.ts";

/** A row of what is compared: a cell of each run. */
export interface ComparedRow {
  /** The row's subject: rows with the same one are adjacent, and it is shown at the first. */
  readonly key: string;
  /** Which of its figures; empty if there is one alone. */
  readonly name: string;
  readonly cells: readonly HtmlValue[];
}

export interface ComparedTable {
  readonly caption: string;
  readonly isCaptionHidden?: boolean;
  /** What the keys are. */
  readonly head: string;
  /** Of the columns: a run each. */
  readonly runs: readonly HtmlValue[];
  readonly isText?: boolean;
  readonly rows: readonly ComparedRow[];
}

/** A table of several runs, a column a run. */
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
      // a screen reader says the subject at every row
      rows[index - 1]?.key === key ? html`<span class="unseen">${key}</span>` : key,
      ...(hasNames ? [name] : []),
      ...cells,
    ]),
  });
}

/** Rows of a table that are seen at a glance; more are folded away. */
const mostSeen = 16;

/** A table as it is, or where it is long folded away beneath a line that names it. */
export function folded(caption: string, rows: number, table: Html): Html {
  if (rows === 0) return nothing;
  if (rows <= mostSeen) return table;
  return html`<details class="long"><summary>${caption}: ${rows} rows</summary>\n${table}</details>\n`;
}
