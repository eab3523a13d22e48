import { feesChart } from "../charts/fees-chart.ts";
import { funnelChart } from "../charts/funnel-chart.ts";
import { latencyChart } from "../charts/latency-chart.ts";
import { slippageChart } from "../charts/slippage-chart.ts";
import { figuresTable } from "../page/figures-table.ts";
import { type Html, html, nothing } from "../page/html.ts";
import {
  absences,
  chartRun,
  empty,
  notes,
  overPanels,
  type PageParts,
  type PageSection,
  runColumn,
  runNotes,
} from "./page-section.ts";
import { numberOf, type Part, partsTable } from "./part-tables.ts";
import { type Group, groupOf, type Panel, type ReportedRun, sectionOf } from "./reported.ts";

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

/** What happened to orders, how much that cost, and how long it took. */
export const executionSection: PageSection = {
  id: "execution",
  title: "Execution",
  render: async (page: PageParts) => {
    const { runs } = page.reported;
    const told = page.panels.filter(({ members }) => membersOf(members).length > 0);
    const said = (run: ReportedRun) => sectionOf(run.told, "execution")?.notes ?? [];
    const absent = absences(runs, "execution");
    if (told.length === 0) return empty(absent[0] ?? runs.flatMap(said)[0] ?? "no orders");
    const conventions = sectionOf(runs[0]!.told, "execution")?.conventions ?? "";
    const body = await overPanels(told, (panel) => panelHtml(panel, page));
    return html`${notes([conventions])}${body}${notes(absent)}${runNotes(runs, said)}`;
  },
};

type Member = Panel["members"][number] & { readonly group: Group };

function membersOf(members: Panel["members"]): readonly Member[] {
  return members.flatMap((member) => {
    const group = groupOf(member.run.told, "execution", member.key);
    return group === undefined ? [] : [{ ...member, group }];
  });
}

async function panelHtml(panel: Panel, { reported: { runs }, drawings }: PageParts): Promise<Html> {
  const members = membersOf(panel.members);
  const isOnly = runs.length === 1;
  const by = (run: ReportedRun, name: string): readonly Part[] =>
    members.find((member) => member.run === run)?.group.parts.filter((part) => part.by === name) ?? [];
  const charts = [
    await funnelChart({
      runs: runs.map((run) => ({
        ...chartRun(run),
        states: by(run, "state").map((part) => ({ state: part.key, orders: numberOf(part, "orders") ?? 0 })),
      })),
    }),
    await slippageChart({
      runs: runs.map((run) => ({ ...chartRun(run), groups: by(run, "slippage").flatMap(slippages) })),
    }),
    await latencyChart({
      runs: runs.map((run) => ({
        ...chartRun(run),
        groups: latencies.flatMap(([name, measure]) =>
          by(run, name).flatMap((part) => latency(part, measure)),
        ),
      })),
    }),
    await feesChart({
      runs: runs.map((run) => ({ ...chartRun(run), groups: by(run, "venue").flatMap(fees) })),
    }),
  ];
  const table = (caption: string, head: string, name: string) =>
    partsTable(
      caption,
      head,
      members.map(({ run }) => ({ run, parts: by(run, name) })),
      isOnly,
    );
  const hasSymbols = members.some(({ run }) => by(run, "symbol").length > 1);
  const columns = members.map(({ run, group }) => runColumn(run, isOnly, group.figures));
  return html`${figuresTable("Figures of the execution", columns, names)}${charts.map((chart) =>
    // the figures and tables say why something is missing
    "reason" in chart ? nothing : drawings.add(chart, chart.title),
  )}${table("Slippage in basis points, and the age of the books", "Orders", "slippage")}${table("Orders by type", "Type", "order_type")}${hasSymbols ? table("Orders by symbol", "Symbol", "symbol") : nothing}${table("Fees by venue, rebates separate", "Venue", "venue")}`;
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
