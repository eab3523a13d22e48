import { feesChart } from "../charts/fees-chart.ts";
import { funnelChart } from "../charts/funnel-chart.ts";
import { latencyChart } from "../charts/latency-chart.ts";
import { slippageChart } from "../charts/slippage-chart.ts";
import { figuresTable } from "../page/figures-table.ts";
import { type Html, html, nothing } from "../page/html.ts";
import {
  absences,
  empty,
  notes,
  overPanels,
  type PageParts,
  type PageSection,
  runHead,
} from "./page-section.ts";
import { numberOf, type Part, partTable } from "./part-tables.ts";
import { type Group, groupOf, type Panel, sectionOf } from "./reported.ts";

const names = [
  ...["orders", "partly_filled", "fill_ratio_orders", "fill_ratio_quantity", "fills", "fills_without_order"],
  ...["maker_share", "taker_share", "accept_latency_p50", "accept_latency_p99", "fill_latency_p50"],
  "fill_latency_p99",
];
const references = ["arrival", "bar", "mid"] as const;
const latencies = [
  ["accept_latency", "submit to accept"],
  ["fill_latency", "submit to first fill"],
] as const;

/** What became of orders, what that cost, and how long it took. */
export const executionSection: PageSection = {
  id: "execution",
  title: "Execution",
  render: async (page: PageParts) => {
    const { runs } = page.reported;
    const told = page.panels.filter(({ members }) => membersOf(members).length > 0);
    const said = runs.flatMap((run) => sectionOf(run.told, "execution")?.notes ?? []);
    if (told.length === 0) return empty(absences(runs, "execution")[0] ?? said[0] ?? "no orders");
    const conventions = sectionOf(runs[0]!.told, "execution")?.conventions ?? "";
    const body = await overPanels(told, (panel) => panelHtml(panel, page));
    return html`${notes([conventions])}${body}${notes(said)}`;
  },
};

type Member = Panel["members"][number] & { readonly group: Group };

function membersOf(members: Panel["members"]): readonly Member[] {
  return members.flatMap((member) => {
    const group = groupOf(member.run.told, "execution", member.key);
    return group === undefined ? [] : [{ ...member, group }];
  });
}

async function panelHtml(panel: Panel, { drawings }: PageParts): Promise<Html> {
  const members = membersOf(panel.members);
  const isOnly = members.length === 1;
  const columns = members.map(({ run, group }) => ({
    title: isOnly ? "Value" : runHead(run, false),
    name: isOnly ? "" : run.label,
    figures: group.figures,
  }));
  const parts: Html[] = [figuresTable("Figures of the execution", columns, names)];
  for (const { run, group } of members) {
    const of = isOnly ? "" : `${run.label} ${run.name}: `;
    const by = (name: string) => group.parts.filter((part) => part.by === name);
    const charts = [
      await funnelChart({
        states: by("state").map((part) => ({ state: part.key, orders: numberOf(part, "orders") ?? 0 })),
      }),
      await slippageChart({ groups: by("slippage").flatMap(slippages) }),
      await latencyChart({
        groups: latencies.flatMap(([name, measure]) => by(name).flatMap((part) => latency(part, measure))),
      }),
      await feesChart({ groups: by("venue").flatMap(fees) }),
    ];
    for (const chart of charts) {
      // of which there is nothing the figures and tables say why
      parts.push("reason" in chart ? nothing : drawings.add(chart, `${of}${chart.title}`));
    }
    parts.push(
      partTable(`${of}Slippage in basis points, and the age of the books`, "Orders", by("slippage")),
      partTable(`${of}Orders by type`, "Type", by("order_type")),
      by("symbol").length > 1 ? partTable(`${of}Orders by symbol`, "Symbol", by("symbol")) : nothing,
      partTable(`${of}Fees by venue, rebates apart`, "Venue", by("venue")),
    );
  }
  return html`${parts}`;
}

function slippages(part: Part) {
  return references.map((reference) => {
    const figure = part.figures[reference];
    const isKnown = figure !== undefined && figure.value !== null;
    const basisPoints = isKnown ? Number(figure.value) : null;
    return { type: part.key, reference, basisPoints, fills: isKnown ? figure.n : 0 };
  });
}

function latency(part: Part, measure: string) {
  const [p50, p95, p99] = ["p50", "p95", "p99"].map((name) => numberOf(part, name));
  if (p50 == null || p95 == null || p99 == null) return [];
  const { p50: median } = part.figures;
  const orders = median === undefined || median.value === null ? 0 : median.n;
  return [{ measure, type: part.key, orders, quantiles: { p50: p50 * 1e3, p95: p95 * 1e3, p99: p99 * 1e3 } }];
}

function fees(part: Part) {
  const { fees: paid, rebates } = part.figures;
  if (paid === undefined || paid.value === null) return [];
  return [
    {
      venue: part.key,
      currency: paid.unit,
      fees: Math.abs(Number(paid.value)),
      rebates: Math.abs(Number(rebates?.value ?? 0)),
    },
  ];
}
