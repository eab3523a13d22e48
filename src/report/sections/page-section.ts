import type { OfRun } from "../charts/chart-data.ts";
import type { Drawings } from "../page/drawings.ts";
import type { Figures, FiguresColumn } from "../page/figures-table.ts";
import { type Html, html, nothing } from "../page/html.ts";
import { sentence } from "../page/time-text.ts";
import type { Panel, Reported, ReportedRun } from "./reported.ts";

/** One section of the page. A new one is an entry of the list in `page-sections.ts`. */
export interface PageSection {
  /** Its id in links. */
  readonly id: string;
  readonly title: string;
  /** The part below its heading; a section without data is one line that says why. */
  render(page: PageParts): Promise<Html>;
}

/** The data and tools of sections. */
export interface PageParts {
  readonly reported: Reported;
  readonly panels: readonly Panel[];
  readonly drawings: Drawings;
}

/** The line of a section without data. */
export function empty(reason: string): Html {
  return html`<p class="empty">${sentence(reason)}</p>\n`;
}

/** Sentences below a table or chart. */
export function notes(lines: readonly string[]): Html {
  return html`${[...new Set(lines)].map((line) => html`<p class="note">${sentence(line)}</p>\n`)}`;
}

/** A section's text for each panel, under headings if there are several. */
export async function overPanels(
  panels: readonly Panel[],
  render: (panel: Panel) => Promise<Html> | Html,
): Promise<Html> {
  const parts: Html[] = [];
  for (const panel of panels) {
    parts.push(panel.name === "" ? nothing : html`<h3>${panel.name}</h3>\n`, await render(panel));
  }
  return html`${parts}`;
}

/** A run as a column's heading: its colour and number, or just its name. */
export function runHead(run: ReportedRun, isOnly: boolean): Html {
  return isOnly ? html`${run.name}` : html`<span class="swatch run-${run.number}"></span>${run.label}`;
}

/** Why runs have no figures in a section; most have the same reason. */
export function absences(runs: readonly ReportedRun[], section: string): readonly string[] {
  const told = runs.map(({ label, told }) => {
    const reason = told.sections.find(({ name }) => name === section)?.absent ?? null;
    return reason === null ? null : runs.length === 1 ? reason : `${label} ${reason}`;
  });
  return told.filter((reason) => reason !== null);
}

/** A run as charts know it. */
export function chartRun({ name, label, number }: ReportedRun): OfRun {
  return { name, label, number };
}

/** A run's column heading for figures: colour and number, or `Value` for a single run. */
export function runColumn(run: ReportedRun, isOnly: boolean, figures: Figures): FiguresColumn {
  return { title: isOnly ? "Value" : runHead(run, false), name: isOnly ? "" : run.label, figures };
}

/** Sentences about each run; with several runs, after its number, or once if all say the same. */
export function runNotes(runs: readonly ReportedRun[], of: (run: ReportedRun) => readonly string[]): Html {
  const [first] = runs;
  const told = runs.map(of);
  const isSame = told.every((lines) => JSON.stringify(lines) === JSON.stringify(told[0]));
  if (first === undefined || isSame) return notes(told[0] ?? []);
  return notes(runs.flatMap(({ label }, index) => told[index]!.map((line) => `${label} ${line}`)));
}
