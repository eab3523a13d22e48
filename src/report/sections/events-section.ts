import { grouped } from "../../model/text/number-text.ts";
import { eventsChart } from "../charts/events-chart.ts";
import { dataTable } from "../page/data-table.ts";
import { type Html, html, nothing } from "../page/html.ts";
import { instantText } from "../page/time-text.ts";
import { milliseconds } from "../read/read-curves.ts";
import type { EventsRead } from "../read/read-events.ts";
import { chartRun, empty, notes, type PageParts, type PageSection, runHead } from "./page-section.ts";
import type { ReportedRun } from "./reported.ts";

/** Most kinds in the table. */
const most = 50;

/** What happened to the runtime and the accounts. */
export const eventsSection: PageSection = {
  id: "events",
  title: "Event timeline",
  render: async ({ reported: { runs }, drawings }: PageParts) => {
    const isOnly = runs.length === 1;
    const known = runs.filter(({ read }) => read.events.count > 0);
    const reasons = runs
      .filter((run) => !known.includes(run))
      .map((run) => `${isOnly ? "" : `${run.label} `}${whyNone(run)}`);
    if (known.length === 0) return empty(reasons[0] ?? "no events");
    const chart = await eventsChart({
      runs: runs.map((run) => ({
        ...chartRun(run),
        events: run.read.events.drawn.map(({ ts, kind, severity, message }) => ({
          ...{ time: milliseconds(ts), kind, severity, message },
        })),
      })),
      note: noteOf(known),
    });
    return html`${drawings.add(chart)}${kindsTable(known, isOnly)}${notes(isOnly ? [] : reasons)}${known.map((run) => listHtml(run, isOnly))}`;
  },
};

function whyNone({ read }: ReportedRun): string {
  const state = read.manifest.tables.events?.state;
  if (state === undefined) return "events were never archived for this run";
  return state === "ABSENT" ? "the gateway keeps no events of this run" : "no events";
}

function noteOf(runs: readonly ReportedRun[]): string {
  const sum = (of: (events: EventsRead) => number) =>
    runs.reduce((total, { read }) => total + of(read.events), 0);
  const [all, drawn] = [sum(({ count }) => count), sum((events) => events.drawn.length)];
  return all === drawn
    ? ""
    : `Of ${grouped(all)} events, ${grouped(drawn)}: the first of each kind and severity in each stretch of time.`;
}

/** How many of each kind, one column per run. */
function kindsTable(runs: readonly ReportedRun[], isOnly: boolean): Html {
  const kinds = new Map(
    runs.flatMap(({ read }) => read.events.kinds.map((kind) => [`${kind.kind} ${kind.severity}`, kind])),
  );
  const rows = [...kinds.values()].sort((a, b) => (a.kind < b.kind ? -1 : Number(a.kind > b.kind)));
  return dataTable({
    caption: "Events by kind",
    columns: [
      { title: "Kind" },
      { title: "Severity" },
      ...runs.map((run) => ({ title: isOnly ? "Events" : runHead(run, false), isNumber: true })),
    ],
    rows: rows.slice(0, most).map(({ kind, severity }) => [
      kind,
      severity,
      ...runs.map(({ read }) => {
        const own = read.events.kinds.find((each) => each.kind === kind && each.severity === severity);
        return own === undefined ? "–" : grouped(own.count);
      }),
    ]),
  });
}

function listHtml({ label, name, read }: ReportedRun, isOnly: boolean): Html {
  const { listed, count } = read.events;
  const of = isOnly ? "" : ` of ${label} ${name}`;
  return html`<details><summary>The events${of}</summary>
${dataTable({
  caption: `The events${of}`,
  isCaptionHidden: true,
  columns: [
    { title: "UTC" },
    { title: "Kind" },
    { title: "Severity" },
    { title: "Amount", isNumber: true },
    { title: "Message", isText: true },
  ],
  rows: listed.map(({ ts, kind, severity, amount, message }) => [
    ...[instantText(ts), kind, severity],
    ...[amount === "" ? "–" : amount.replaceAll(/-(?=\d)/g, "−"), cut(message)],
  ]),
})}${count > listed.length ? html`<p class="note">${listed.length} of ${grouped(count)}: the first of each kind; \`runvault query "FROM events"\` has all.</p>\n` : nothing}</details>
`;
}

/** The beginning of a long message. */
function cut(message: string): string {
  const characters = [...message];
  return characters.length <= 200 ? message : `${characters.slice(0, 200).join("")}…`;
}
