import { type Html, type HtmlValue, html, nothing } from "./html.ts";

export interface TableColumn {
  readonly title: HtmlValue;
  /** Numbers are aligned to the right, digit under digit. */
  readonly isNumber?: boolean;
  /** Long text, which is broken into lines. */
  readonly isText?: boolean;
}

export interface DataTable {
  /** The table's subject, for screen readers; shown above it unless `hidden`. */
  readonly caption: string;
  readonly isCaptionHidden?: boolean;
  readonly columns: readonly TableColumn[];
  /** The first cell of a row is its heading. */
  readonly rows: readonly (readonly HtmlValue[])[];
  readonly className?: string;
}

/** A table that scrolls by itself if it is wider than the page. */
export function dataTable({ caption, isCaptionHidden, columns, rows, className }: DataTable): Html {
  const kind = (index: number): Html => {
    if (columns[index]?.isNumber) return html` class="n"`;
    return columns[index]?.isText ? html` class="t"` : nothing;
  };
  return html`<div class="scroll" role="region" tabindex="0" aria-label="${caption}">
<table class="${className ?? "data"}"><caption${isCaptionHidden ? html` class="unseen"` : nothing}>${caption}</caption>
<thead><tr>${columns.map(({ title }, index) => html`<th scope="col"${kind(index)}>${title}</th>`)}</tr></thead>
<tbody>
${rows.map(
  ([first = "", ...cells]) =>
    html`<tr><th scope="row"${kind(0)}>${first}</th>${cells.map((cell, index) => html`<td${kind(index + 1)}>${cell}</td>`)}</tr>
`,
)}</tbody></table></div>
`;
}
