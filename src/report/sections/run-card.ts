import type { Check, ReconciledRun } from "../../analytics/reconcile/reconcile-report.ts";
import { figureText } from "../../analytics/render/figure-text.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { shownView } from "../../archive/manifest/table-view.ts";
import { tableNames } from "../../model/profile/table.ts";
import { grouped } from "../../model/text/number-text.ts";
import { countText } from "../../model/text/plural.ts";
import { parseTime } from "../../model/time.ts";
import { dataTable } from "../page/data-table.ts";
import { type Html, type HtmlValue, html, nothing } from "../page/html.ts";
import { instantText, spanText } from "../page/time-text.ts";
import { runHead } from "./page-section.ts";
import { type Reported, type ReportedRun, sectionOf } from "./reported.ts";

/** Who, when and what: the page's head. */
export function runCard({ runs, options }: Reported): Html {
  const [first] = runs;
  const isOnly = runs.length === 1;
  const title = isOnly ? first!.name : `${countText(runs.length, "run")} compared`;
  const rows: readonly (readonly [string, (run: ReportedRun) => HtmlValue])[] = [
    ...(isOnly ? [] : [["Run", ({ name }: ReportedRun) => name] as const]),
    ["State", stateText],
    ["Time", timeText],
    ["Equity", equityText],
    ["Instruments", symbolsText],
    ["Rows", ({ read }) => rowsText(read.manifest, options.allowIncomplete)],
    ["Proof", ({ read }) => proofText(read.manifest)],
    ["Reconciliation", ({ reconciled }) => verdictText(reconciled)],
  ];
  const card = dataTable({
    caption: isOnly ? "The run" : "The runs",
    isCaptionHidden: true,
    className: isOnly ? "card one" : "card",
    columns: [
      { title: html`<span class="unseen">Of the run</span>` },
      ...runs.map((run) => ({
        title: isOnly ? html`<span class="unseen">${run.name}</span>` : runHead(run, false),
      })),
    ],
    rows: rows.map(([name, of]) => [name, ...runs.map(of)]),
  });
  return html`<h1>${title}${isOnly ? html` ${pill(first!)}` : nothing}</h1>
${warnings(runs)}${card}`;
}

/** Prominent warnings: unproven rows, and growing runs. */
function warnings(runs: readonly ReportedRun[]): Html {
  const told = runs.flatMap(({ label, told, name }) => {
    const of = runs.length === 1 ? "" : `${label} `;
    const until =
      told.until === null
        ? []
        : [
            `${of}${runs.length === 1 ? "This run goes" : "goes"} on: figures until ${instantText(parseTime(told.until))} UTC.`,
          ];
    if (told.unproven.length === 0) return until;
    return [
      `${of === "" ? "" : `${of}${name}: `}NOT PROVEN, rows may be missing: ${told.unproven.join(", ")}. Every figure here is based on them.`,
      ...until,
    ];
  });
  return html`${told.map((text) => html`<p class="warning" role="note">${text}</p>\n`)}`;
}

function pill({ told, read }: ReportedRun): Html {
  const proof = weakestProof(read.manifest);
  const words = [told.state, ...(proof === null ? [] : [proof])].join(" · ");
  const kind = told.state === "COMPLETE" ? "good" : told.state === "OPEN" ? "open" : "bad";
  return html`<span class="pill ${kind}">${words}</span>`;
}

function stateText({ told, read }: ReportedRun): string {
  const { status } = read.manifest.run;
  const until = told.until === null ? "" : `, figures until ${instantText(parseTime(told.until))} UTC`;
  return `${[told.state, ...(status === "" ? [] : [status])].join(", ")}${until}`;
}

function timeText({ read }: ReportedRun): string {
  const { started, ended } = read.manifest.run;
  if (started !== null && ended !== null && BigInt(ended) > BigInt(started)) {
    return spanText(BigInt(started), BigInt(ended));
  }
  if (started !== null) return `from ${instantText(BigInt(started))} UTC`;
  return "unknown";
}

function equityText({ read, told }: ReportedRun): HtmlValue {
  const money = (value: string) =>
    figureText("equity", { value, unit: "", convention: "", n: 0, from: "", to: "" });
  const series = read.curves.map(({ account, portfolio, currency, firstEquity, lastEquity }) => {
    const of = read.curves.length === 1 ? "" : `${[account, portfolio].filter(Boolean).join(" / ")}: `;
    return `${of}${money(firstEquity)} → ${money(lastEquity)} ${currency}`.replaceAll(/-(?=\d)/g, "−");
  });
  return lines(series, sectionOf(told, "performance")?.absent ?? "no equity rows");
}

/** Symbols, together if they have the same venues. */
function symbolsText({ read, told }: ReportedRun): HtmlValue {
  const byVenues = Map.groupBy(read.symbols, ({ venues }) => venues.join(", "));
  const texts = [...byVenues].map(([venues, own]) => {
    const names = own.slice(0, mostSymbols).map(({ symbol }) => symbol);
    const more = own.length > names.length ? ` and ${own.length - names.length} more` : "";
    return `${names.join(", ")}${more}${venues === "" ? "" : ` at ${venues}`}`;
  });
  return lines(texts, sectionOf(told, "trades")?.absent ?? "none traded");
}

const mostSymbols = 8;

function lines(texts: readonly string[], none: string): HtmlValue {
  return texts.length === 0 ? none : texts.map((text, index) => (index === 0 ? text : html`<br>${text}`));
}

function rowsText(manifest: Manifest, allowIncomplete: boolean): string {
  const told = tableNames.flatMap((name) => {
    const view = shownView(manifest.tables[name], allowIncomplete);
    if (view === undefined) return [];
    if (view.state === "ABSENT") return [`${name} absent`];
    return [`${name} ${grouped(view.parquet.reduce((sum, { rows }) => sum + rows, 0))}`];
  });
  return told.length === 0 ? "none" : told.join(", ");
}

/** Proofs, weakest first. */
const proofs = ["none", "exhausted", "counted", "hashed"] as const;
const proofWords: Readonly<Record<(typeof proofs)[number], string>> = {
  none: "not proven",
  exhausted: "every stream ended cleanly, and two passes agree",
  counted: "the gateway's row counts match",
  hashed: "the gateway's row checksums match",
};

/** The weakest proof among the tables of a run; null if none has one. */
export function weakestProof({ tables }: Manifest): (typeof proofs)[number] | null {
  const found = Object.values(tables).flatMap((table) => table.proven?.certificate?.proof ?? []);
  return proofs.find((proof) => found.includes(proof)) ?? null;
}

function proofText(manifest: Manifest): string {
  const proof = weakestProof(manifest);
  const wrong = tableNames.flatMap((name) => {
    const state = manifest.tables[name]?.state;
    return state === undefined || ["COMPLETE", "OPEN", "ABSENT"].includes(state) ? [] : [`${name} ${state}`];
  });
  const of = proof === null ? "nothing is proven" : `${proof}: ${proofWords[proof]}`;
  return wrong.length === 0 ? of : `${of}; except ${wrong.join(", ")}`;
}

/** The verdict of reconciliation in words. */
export function verdictText(reconciled: ReconciledRun | string): Html {
  if (typeof reconciled === "string") return html`not checked: ${reconciled}`;
  const { checks, tolerance } = reconciled;
  const of = (verdict: Check["verdict"]) => checks.filter((check) => check.verdict === verdict);
  const [holds, breaks, unchecked] = [of("HOLDS"), of("BREAKS"), of("NOT CHECKED")];
  const named = (list: readonly Check[]) => list.map(({ number, name }) => `${number} (${name})`).join(", ");
  const rest =
    unchecked.length === 0
      ? ""
      : `; not checked, or not completely: ${unchecked.map(({ number }) => number).join(", ")}`;
  if (breaks.length > 0) {
    return html`<strong>the books do not balance</strong>: ${countText(breaks.length, "check")} of ${checks.length} ${breaks.length === 1 ? "breaks" : "break"}, ${named(breaks)}${rest}`;
  }
  return html`${holds.length === checks.length ? "the books balance" : "no break found"}: ${holds.length} of ${checks.length} checks hold at tolerance ${tolerance}${rest}`;
}
