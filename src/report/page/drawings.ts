import type { Chart, NoChart } from "../charts/chart.ts";
import { dataTable } from "./data-table.ts";
import { Html, html, nothing } from "./html.ts";

/** Collects the charts of a page as they are added. */
export class Drawings {
  readonly #charts: Chart[] = [];
  readonly #ids = new Map<string, number>();

  /** With unique ids: the second `equity` is `equity-2`. */
  get charts(): readonly Chart[] {
    return this.#charts;
  }

  /**
   * A chart at both widths (the page's style shows one), with its caption and its numbers to unfold; or, if it was not
   * drawn, a line that says why.
   */
  add(chart: Chart | NoChart, heading: string | null = null): Html {
    if ("reason" in chart) return html`<p class="empty">${chart.title}: ${chart.reason}.</p>\n`;
    const times = (this.#ids.get(chart.id) ?? 0) + 1;
    this.#ids.set(chart.id, times);
    const id = times === 1 ? chart.id : `${chart.id}-${times}`;
    this.#charts.push({ ...chart, id });
    const { columns, rows, note } = chart.numbers;
    const numbers = dataTable({
      caption: `${chart.title}: the numbers`,
      isCaptionHidden: true,
      columns: columns.map((title, index) => ({ title, isNumber: index > 0 })),
      rows,
    });
    return html`<figure class="chart" id="chart-${id}">
${heading === null ? nothing : html`<h3>${heading}</h3>\n`}<div class="wide">${Html.drawn(chart.wide)}</div>
<div class="narrow">${Html.drawn(chart.narrow)}</div>
<figcaption>${chart.caption}</figcaption>
<details><summary>Numbers<span class="unseen"> of ${chart.title}</span></summary>
${numbers}${note === "" ? nothing : html`<p class="note">${note}</p>\n`}</details>
</figure>
`;
  }
}
