import type { Check, ReconciledRun } from "../../analytics/reconcile/reconcile-report.ts";
import { grouped, shortDecimal } from "../../model/text/number-text.ts";
import { countText } from "../../model/text/plural.ts";
import { parseTime } from "../../model/time.ts";
import { dataTable } from "../page/data-table.ts";
import { type Html, html, nothing } from "../page/html.ts";
import { instantText } from "../page/time-text.ts";
import { empty, notes, type PageParts, type PageSection, runHead } from "./page-section.ts";
import type { ReportedRun } from "./reported.ts";
import { verdictText } from "./run-card.ts";

/** The gateway's reported figures against its own rows. */
export const reconciliationSection: PageSection = {
  id: "reconciliation",
  title: "Reconciliation",
  render: async ({ reported: { runs } }: PageParts) => {
    const [first] = runs;
    if (runs.length > 1) return compared(runs);
    const { reconciled } = first!;
    return typeof reconciled === "string" ? empty(`not checked: ${reconciled}`) : verdict(reconciled);
  },
};

/** A row per check, a column per run; below it each run's problems. */
function compared(runs: readonly ReportedRun[]): Html {
  const checked = runs.flatMap(({ label, reconciled }) =>
    typeof reconciled === "string" ? [] : [{ label, checks: reconciled.checks }],
  );
  const first = checked[0]?.checks ?? [];
  const table = dataTable({
    caption: "The eight checks",
    isCaptionHidden: true,
    columns: [
      { title: "Check" },
      ...runs.map((run) => ({ title: runHead(run, false) })),
      { title: "What must hold", isText: true },
    ],
    rows: first.map(({ number, name, formula }) => [
      `${number} ${name}`,
      ...runs.map(({ reconciled }) => {
        const check =
          typeof reconciled === "string"
            ? undefined
            : reconciled.checks.find((each) => each.number === number);
        if (check === undefined) return "–";
        const more =
          check.breaks === 0 ? nothing : html`<span class="of">${countText(check.breaks, "break")}</span>`;
        return html`${verdictWord(check)}${more}`;
      }),
      formula,
    ]),
  });
  return html`${verdicts(runs)}${first.length === 0 ? nothing : table}${checked.map(({ label, checks }) => checks.map((check) => breaks(check, `${label} `)))}${checked.map(({ label, checks }) => notesOf(label, checks))}`;
}

/** One sentence per verdict, with its runs. */
function verdicts(runs: readonly ReportedRun[]): readonly Html[] {
  const told = runs.map(({ label, reconciled }) => {
    const more = typeof reconciled === "string" ? "" : how(reconciled);
    return { label, sentence: html`${verdictText(reconciled)}${more}.` };
  });
  return [...Map.groupBy(told, ({ sentence }) => sentence.text).values()].map(
    (own) => html`<p class="verdict">${own.map(({ label }) => label).join(" ")} ${own[0]!.sentence}</p>\n`,
  );
}

function notesOf(label: string, checks: readonly Check[]): Html {
  const lines = checks.flatMap((check) => said(check));
  if (lines.length === 0) return nothing;
  return html`<details><summary>Notes on the checks of ${label}</summary>\n${notes(lines)}</details>\n`;
}

function verdictWord({ verdict: word }: Check): Html {
  return html`<span class="${word === "BREAKS" ? "loss" : word === "HOLDS" ? "gain" : "none"}">${word}</span>`;
}

/** How the books were read, where the options left that open. */
function how({ accounting, costs, fillOrder }: ReconciledRun): string {
  const found = [
    ...(accounting === null ? [] : [`accounting ${accounting}`]),
    ...(costs === null ? [] : [`costs ${costs === "fifo" ? "first in, first out" : "average"}`]),
    ...(fillOrder === null
      ? []
      : [
          `fills with the same timestamp in the order of ${fillOrder === "key" ? "their keys" : "their trade ids"}`,
        ]),
  ];
  return found.length === 0 ? "" : `; ${found.join(", ")}`;
}

function verdict(run: ReconciledRun): Html {
  const { checks } = run;
  return html`<p class="verdict">Verdict: ${verdictText(run)}${how(run)}.</p>
${dataTable({
  caption: "The eight checks",
  isCaptionHidden: true,
  columns: [
    { title: "Check" },
    { title: "Verdict" },
    { title: "Rows", isNumber: true },
    { title: "Breaks", isNumber: true },
    { title: "Largest", isNumber: true },
    { title: "What must hold", isText: true },
  ],
  rows: checks.map((check) => [
    `${check.number} ${check.name}`,
    verdictWord(check),
    grouped(check.rows),
    grouped(check.breaks),
    check.largest === null ? "–" : shortDecimal(check.largest).replace(/^-/, "−"),
    check.formula,
  ]),
})}${notes(checks.flatMap((check) => said(check)))}${checks.map((check) => breaks(check))}`;
}

function said({ number, reason, notes: own }: Check): readonly string[] {
  const why = reason === null ? [] : [`not checked completely: ${reason}`];
  return [...why, ...own].map((text) => `Check ${number}: ${text}.`);
}

function breaks({ number, name, first, breaks: all }: Check, of = ""): Html {
  if (first.length === 0) return nothing;
  return dataTable({
    caption: `${of}Check ${number}, ${name}: ${countText(all, "break")}, of which the first`,
    columns: [
      { title: "UTC" },
      { title: "Amount", isNumber: true },
      { title: "Problem", isText: true },
      { title: "Rows to look at (table, seq)", isText: true },
    ],
    rows: first.map(({ at, amount, unit, what, rows, moreRows }) => [
      instantText(parseTime(at)),
      amount === null ? "–" : `${shortDecimal(amount).replace(/^-/, "−")} ${unit}`,
      what,
      `${rows.map(({ table, seq }) => `${table} ${seq}`).join(", ")}${moreRows === 0 ? "" : ` and ${countText(moreRows, "more row")}`}`,
    ]),
  });
}
