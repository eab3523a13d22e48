import type { Manifest } from "../../archive/manifest/manifest.ts";
import { shownView } from "../../archive/manifest/table-view.ts";
import { tableNames } from "../../model/profile/table.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { grouped } from "../../model/text/number-text.ts";
import { formatTime } from "../../model/time.ts";
import { dataTable } from "../page/data-table.ts";
import { type Html, html, nothing } from "../page/html.ts";
import { spanText } from "../page/time-text.ts";
import { type PageParts, type PageSection, runHead } from "./page-section.ts";
import type { Reported, ReportedRun } from "./reported.ts";

/** Most files that are listed with their hashes. */
const most = 500;

/** The rows and options on which the page is based. */
export const provenanceSection: PageSection = {
  id: "provenance",
  title: "Provenance",
  render: async ({ reported }: PageParts) => {
    const { runs, options, toldOptions } = reported;
    const asked = Object.entries(toldOptions).map(([name, value]) => [
      `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
      value === null ? "not given" : String(value),
    ]);
    return html`${factsTable(runs)}${runs.map((run) => runHtml(run, reported))}${dataTable({
      caption: "Options",
      className: "data facts",
      columns: [{ title: "Option" }, { title: "Value" }],
      rows: asked,
    })}${options.allowIncomplete ? html`<p class="note">Unproven rows were allowed.</p>\n` : nothing}`;
  },
};

/** The archive's facts about the runs, a column per run. */
function factsTable(runs: readonly ReportedRun[]): Html {
  const rows: readonly (readonly [string, (manifest: Manifest) => string])[] = [
    ["Generation", ({ generation }) => String(generation)],
    ["Committed", ({ committedAt }) => committedAt],
    ["Archived by", ({ tool }) => tool],
    ["From", ({ source }) => source],
    ["Storage version", ({ run }) => run.storageVersion ?? "the source has none"],
    ...(runs.some(({ read }) => read.manifest.horizon !== null)
      ? [
          [
            "Horizon",
            ({ horizon }: Manifest) => (horizon === null ? "–" : formatTime(BigInt(horizon))),
          ] as const,
        ]
      : []),
  ];
  const isOnly = runs.length === 1;
  return dataTable({
    caption: isOnly ? `Archive facts about ${runs[0]!.name}` : "Archive facts about the runs",
    className: isOnly ? "data facts" : "card",
    columns: [
      { title: "Of the run" },
      ...runs.map((run) => ({ title: isOnly ? "Value" : runHead(run, false) })),
    ],
    rows: rows.map(([name, of]) => [name, ...runs.map(({ read }) => of(read.manifest))]),
  });
}

function runHtml({ name, label, read: { manifest } }: ReportedRun, { runs, options }: Reported): Html {
  const heading = runs.length === 1 ? nothing : html`<h3>${label} ${name}</h3>\n`;
  const views = tableNames.map((table) => ({
    table,
    state: manifest.tables[table]?.state,
    view: shownView(manifest.tables[table], options.allowIncomplete),
  }));
  const files = views.flatMap(({ table, view }) => (view?.parquet ?? []).map((file) => ({ table, ...file })));
  return html`${heading}${dataTable({
    caption: `Tables of ${name}`,
    isCaptionHidden: runs.length > 1,
    columns: [
      { title: "Table" },
      { title: "State" },
      { title: "Proof" },
      { title: "Rows", isNumber: true },
      { title: "Set aside", isNumber: true },
      { title: "From – to" },
    ],
    rows: views.map(({ table, state, view }) => {
      if (state === undefined) return [table, "never archived", "–", "–", "–", "–"];
      const [first, last] = [view?.parquet[0]?.first, view?.parquet.at(-1)?.last];
      const { certificate = null } = view ?? {};
      return [
        ...[table, state, certificate?.proof ?? "–"],
        view === undefined ? "–" : grouped(view.parquet.reduce((sum, { rows }) => sum + rows, 0)),
        certificate === null ? "–" : grouped(certificate.quarantined),
        first === undefined || last === undefined ? "–" : spanText(BigInt(first.ts), BigInt(last.ts)),
      ];
    }),
  })}<details><summary>Files<span class="unseen"> of ${name}</span> and their hashes</summary>
${dataTable({
  caption: `Files of ${name}`,
  isCaptionHidden: true,
  columns: [
    { title: "File" },
    { title: "Table" },
    { title: "Rows", isNumber: true },
    { title: "Size", isNumber: true },
    { title: "SHA-256" },
  ],
  rows: files
    .slice(0, most)
    .map(({ file, table, rows, storedBytes, sha256 }) => [
      ...[file, table, grouped(rows), byteText(storedBytes)],
      html`<code>${sha256}</code>`,
    ]),
})}${files.length > most ? html`<p class="note">The first ${most} of ${grouped(files.length)} files; \`runvault export --list --all-tables\` lists all.</p>\n` : nothing}</details>
`;
}
