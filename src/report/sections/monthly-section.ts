import { figure } from "../../analytics/figure.ts";
import { figureText } from "../../analytics/render/figure-text.ts";
import { dataTable } from "../page/data-table.ts";
import { type Html, html } from "../page/html.ts";
import { absences, empty, overPanels, type PageParts, type PageSection, runHead } from "./page-section.ts";
import { type Group, groupOf, type ReportedRun } from "./reported.ts";

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/** Tints of a cell, from the faintest. */
const steps = 5;

/** Returns by calendar month, one row per year. */
export const monthlySection: PageSection = {
  id: "monthly",
  title: "Monthly returns, %",
  render: async ({ reported, panels }: PageParts) => {
    const absent = absences(reported.runs, "monthly");
    const told = panels.filter(({ members }) =>
      members.some(({ run, key }) => (groupOf(run.told, "monthly", key)?.parts.length ?? 0) > 0),
    );
    if (told.length === 0) return empty(absent[0] ?? "no return in any month");
    const isOnly = reported.runs.length === 1;
    const body = await overPanels(told, ({ members }) =>
      monthTable(
        members.map(({ run, key }) => ({ run, parts: groupOf(run.told, "monthly", key)?.parts ?? [] })),
        isOnly,
      ),
    );
    return html`${body}<p class="note">Compounded from the sessions' returns; years from their months. * a partial month; – no rows.</p>
`;
  },
};

type Part = Group["parts"][number];

function returnOf({ figures }: Part): number | null {
  const value = figures.return?.value ?? null;
  return value === null ? null : Number(value);
}

/** One row per year and run, all with the same tints. */
function monthTable(
  runs: readonly { readonly run: ReportedRun; readonly parts: readonly Part[] }[],
  isOnly: boolean,
): Html {
  const largest = Math.max(
    ...runs.flatMap(({ parts }) => parts.map((part) => Math.abs(returnOf(part) ?? 0))),
  );
  const years = runs.flatMap(({ run, parts }) =>
    [...Map.groupBy(parts, ({ key }) => key.slice(0, 4))].map(([year, own]) => ({ year, run, own })),
  );
  // the runs of a year keep their order
  years.sort((a, b) => (a.year === b.year ? 0 : a.year < b.year ? -1 : 1));
  const heads = [...months, "Year"].map((title) => ({ title, isNumber: true }));
  return dataTable({
    caption: "Monthly returns, %",
    isCaptionHidden: true,
    className: "months",
    columns: [{ title: "Year" }, ...(isOnly ? [] : [{ title: "Run" }]), ...heads],
    rows: years.map(({ year, run, own }, index) => [
      years[index - 1]?.year === year ? html`<span class="unseen">${year}</span>` : year,
      ...(isOnly ? [] : [runHead(run, false)]),
      ...yearCells(own, largest),
    ]),
  });
}

function yearCells(own: readonly Part[], largest: number): readonly Html[] {
  const cells = months.map((_, index) => {
    const part = own.find(({ key }) => Number(key.slice(5)) === index + 1);
    const value = part === undefined ? null : returnOf(part);
    if (part === undefined || value === null) return html`<span class="none">–</span>`;
    const known = part.figures.return!;
    const isPartial = known.value !== null && known.convention.includes("partial");
    return cell(value, largest, isPartial ? "*" : "");
  });
  const values = own.flatMap((part) => returnOf(part) ?? []);
  const whole = values.reduce((product, value) => product * (1 + value), 1) - 1;
  const total =
    values.length === 0
      ? html`<span class="none">–</span>`
      : cell(whole, Math.max(largest, Math.abs(whole)), "");
  return [...cells, total];
}

/** A return in percent, with its sign and a tint that grows with its size. */
function cell(value: number, largest: number, mark: string): Html {
  const known = figure(value, { unit: "ratio", convention: "", n: 1, from: 0n, to: 0n });
  const text = figureText("return", known)
    .replace(" %", "")
    .replaceAll(/-(?=\d)/g, "−");
  const step = value === 0 || largest === 0 ? 0 : Math.max(1, Math.ceil((Math.abs(value) / largest) * steps));
  const kind = step === 0 ? "flat" : `${value > 0 ? "g" : "l"}${step}`;
  return html`<span class="tint ${kind}">${value > 0 ? "+" : ""}${text}${mark}</span>`;
}
