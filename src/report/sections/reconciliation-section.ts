import type { Check, ReconciledRun } from "../../analytics/reconcile/reconcile-report.ts";
import { grouped } from "../../model/text/number-text.ts";
import { countText } from "../../model/text/plural.ts";
import { parseTime } from "../../model/time.ts";
import { dataTable } from "../page/data-table.ts";
import { type Html, html, nothing } from "../page/html.ts";
import { instantText } from "../page/time-text.ts";
import { empty, notes, type PageParts, type PageSection } from "./page-section.ts";
import { verdictText } from "./run-card.ts";

/** What the gateway reported, against the rows that it reported it by. */
export const reconciliationSection: PageSection = {
  id: "reconciliation",
  title: "Reconciliation",
  render: async ({ reported: { runs } }: PageParts) =>
    html`${runs.map(({ name, label, reconciled }) => {
      const heading = runs.length === 1 ? nothing : html`<h3>${label} ${name}</h3>\n`;
      if (typeof reconciled === "string") return html`${heading}${empty(`not checked: ${reconciled}`)}`;
      return html`${heading}${verdict(reconciled)}`;
    })}`,
};

function verdict(run: ReconciledRun): Html {
  const { accounting, costs, fillOrder, checks } = run;
  const how = [
    ...(accounting === null ? [] : [`accounting ${accounting}`]),
    ...(costs === null ? [] : [`costs ${costs === "fifo" ? "first in, first out" : "average"}`]),
    ...(fillOrder === null
      ? []
      : [`fills of one instant in the order of ${fillOrder === "key" ? "their keys" : "their trade ids"}`]),
  ];
  return html`<p class="verdict">Verdict: ${verdictText(run)}${how.length === 0 ? "" : `; ${how.join(", ")}`}.</p>
${dataTable({
  caption: "The eight checks",
  isCaptionHidden: true,
  columns: [
    { title: "Check" },
    { title: "Verdict" },
    { title: "Rows", isNumber: true },
    { title: "Breaks", isNumber: true },
    { title: "Largest", isNumber: true },
    { title: "What has to hold", isText: true },
  ],
  rows: checks.map((check) => [
    `${check.number} ${check.name}`,
    html`<span class="${check.verdict === "BREAKS" ? "loss" : check.verdict === "HOLDS" ? "gain" : "none"}">${check.verdict}</span>`,
    grouped(check.rows),
    grouped(check.breaks),
    check.largest === null ? "–" : check.largest.replace(/^-/, "−"),
    check.formula,
  ]),
})}${notes(checks.flatMap((check) => said(check)))}${checks.map(breaks)}`;
}

function said({ number, reason, notes: own }: Check): readonly string[] {
  const why = reason === null ? [] : [`not checked everywhere: ${reason}`];
  return [...why, ...own].map((text) => `Check ${number}: ${text}.`);
}

function breaks({ number, name, first, breaks: all }: Check): Html {
  if (first.length === 0) return nothing;
  return dataTable({
    caption: `Check ${number}, ${name}: ${countText(all, "break")}, of which the first`,
    columns: [
      { title: "UTC" },
      { title: "Amount", isNumber: true },
      { title: "What is wrong", isText: true },
      { title: "Rows to look at (table, seq)", isText: true },
    ],
    rows: first.map(({ at, amount, unit, what, rows, moreRows }) => [
      instantText(parseTime(at)),
      amount === null ? "–" : `${amount.replace(/^-/, "−")} ${unit}`,
      what,
      `${rows.map(({ table, seq }) => `${table} ${seq}`).join(", ")}${moreRows === 0 ? "" : ` and ${countText(moreRows, "more row")}`}`,
    ]),
  });
}
