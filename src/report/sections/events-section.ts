import { grouped } from "../../model/text/number-text.ts";
import { eventsChart } from "../charts/events-chart.ts";
import { dataTable } from "../page/data-table.ts";
import { type Html, html, nothing } from "../page/html.ts";
import { instantText } from "../page/time-text.ts";
import { milliseconds } from "../read/read-curves.ts";
import { empty, type PageParts, type PageSection } from "./page-section.ts";

/** Kinds that stand in the table. */
const most = 50;

/** What happened to the runtime and the accounts. */
export const eventsSection: PageSection = {
  id: "events",
  title: "Event timeline",
  render: async ({ reported: { runs }, drawings }: PageParts) => {
    const parts: Html[] = [];
    const isOnly = runs.length === 1;
    for (const { name, label, read } of runs) {
      const { count, drawn, listed, kinds } = read.events;
      const state = read.manifest.tables.events?.state;
      if (count === 0) {
        const why =
          state === undefined
            ? "events were never archived for this run"
            : state === "ABSENT"
              ? "the gateway keeps no events of this run"
              : "no events";
        parts.push(empty(isOnly ? why : `${label}: ${why}`));
        continue;
      }
      const chart = await eventsChart({
        events: drawn.map(({ ts, kind, severity, message }) => ({
          ...{ time: milliseconds(ts), kind, severity, message },
        })),
        note:
          drawn.length === count
            ? count === 1
              ? "The only event."
              : `All ${grouped(count)} events.`
            : `Of ${grouped(count)} events, ${grouped(drawn.length)}: one of each kind and severity in each stretch of time.`,
      });
      const of = isOnly ? "" : ` of ${label}`;
      parts.push(
        drawings.add(chart, isOnly ? null : `${label} ${name}`),
        dataTable({
          caption: `Events by kind${of}`,
          columns: [{ title: "Kind" }, { title: "Severity" }, { title: "Events", isNumber: true }],
          rows: kinds.slice(0, most).map((kind) => [kind.kind, kind.severity, grouped(kind.count)]),
        }),
        html`<details><summary>The events${of}</summary>
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
`,
      );
    }
    return html`${parts}`;
  },
};

/** Of a long message its beginning. */
function cut(message: string): string {
  const characters = [...message];
  return characters.length <= 200 ? message : `${characters.slice(0, 200).join("")}…`;
}
