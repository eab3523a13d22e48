import { figure } from "../../analytics/figure.ts";
import { spanText as durationText, figureText } from "../../analytics/render/figure-text.ts";
import { agreeing, countText } from "../../model/text/plural.ts";
import { excursionsChart } from "../charts/excursions-chart.ts";
import { profitChart } from "../charts/profit-chart.ts";
import { comparedTable } from "../page/compared-table.ts";
import { dataTable } from "../page/data-table.ts";
import { figuresTable } from "../page/figures-table.ts";
import { type Html, html, nothing } from "../page/html.ts";
import { instantText } from "../page/time-text.ts";
import type { ToldTrade, TradesRead } from "../read/read-trades.ts";
import {
  absences,
  chartRun,
  empty,
  notes,
  overPanels,
  type PageParts,
  type PageSection,
  runColumn,
  runHead,
  runNotes,
} from "./page-section.ts";
import { type Group, groupOf, isSameKey, type Panel, type ReportedRun, sectionOf } from "./reported.ts";

const names = [
  ...["trades", "open_trades", "net_pnl", "closed_net_pnl", "hit_rate", "profit_factor", "payoff"],
  ...["expectancy", "holding_time", "fees", "turnover"],
];
const breakdowns = ["symbol", "hour", "weekday"] as const;
const weekdays = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/** The results of trades, their excursions, and the best and worst of them. */
export const tradesSection: PageSection = {
  id: "trades",
  title: "Trades",
  render: async (page: PageParts) => {
    const { runs } = page.reported;
    const told = page.panels.filter(({ members }) => tradedBy(members).length > 0);
    const said = (run: ReportedRun) =>
      (sectionOf(run.told, "trades")?.notes ?? []).filter((text) => runs.length > 1 || text !== "no fills");
    const absent = absences(runs, "trades");
    if (told.length === 0) return empty(absent[0] ?? "no fills");
    const conventions = sectionOf(runs[0]!.told, "trades")?.conventions ?? "";
    const body = await overPanels(told, (panel) => panelHtml(panel, page));
    return html`<p class="note">Trades are ${conventions}.</p>\n${body}${notes(absent)}${runNotes(runs, said)}`;
  },
};

type Member = Panel["members"][number] & { readonly group: Group };

function tradedBy(members: Panel["members"]): readonly Member[] {
  return members.flatMap((member) => {
    const group = groupOf(member.run.told, "trades", member.key);
    return group === undefined ? [] : [{ ...member, group }];
  });
}

async function panelHtml(panel: Panel, { reported, drawings }: PageParts): Promise<Html> {
  const { currency } = panel;
  const { runs } = reported;
  const members = tradedBy(panel.members);
  const isOnly = runs.length === 1;
  const traded = members.flatMap(({ run, key }) => {
    const read = run.read.trades.find((own) => isSameKey(own, key));
    return read === undefined ? [] : [{ run, read }];
  });
  const columns = members.map(({ run, group }) => runColumn(run, isOnly, group.figures));
  const parts: Html[] = [figuresTable("Figures of the trades", columns, names)];
  if (traded.length === 0) return html`${parts}`;
  const fromFills = traded.reduce((sum, { read }) => sum + read.fromFills, 0);
  const excursions = await excursionsChart({
    ...{ currency, grouping: reported.options.group },
    runs: runs.map((run) => {
      const own = traded.find((each) => each.run === run)?.read ?? noTrades;
      return { ...chartRun(run), mae: own.mae, mfe: own.mfe, net: own.net };
    }),
    note:
      fromFills === 0
        ? "From the trades' own fills and whole bars between them, before fees."
        : `From the trades' own fills and whole bars between them, before fees; of ${countText(fromFills, "trade")} without one, from ${agreeing(fromFills, "its", "their")} fills alone.`,
  });
  parts.push(drawings.add(excursions, excursions.title));
  for (const by of breakdowns) {
    const own = runs.map((run) => {
      const group = members.find((member) => member.run === run)?.group;
      return { ...chartRun(run), groups: group === undefined ? [] : profits(group, by) };
    });
    // all trades are in one symbol, so this would repeat the figure above
    if (by === "symbol" && new Set(own.flatMap(({ groups }) => groups.map(({ key }) => key))).size < 2)
      continue;
    const profit = await profitChart({ currency, by, runs: own });
    parts.push(drawings.add(profit, profit.title));
  }
  for (const which of ["best", "worst"] as const) parts.push(extremes(which, traded, currency, isOnly));
  return html`${parts}`;
}

const none = new Float64Array();
const noTrades = { mae: none, mfe: none, net: none };

function profits(group: Group, by: (typeof breakdowns)[number]) {
  return group.parts
    .filter((part) => part.by === by)
    .flatMap(({ key, figures: { net_pnl, trades } }) => {
      if (net_pnl === undefined || net_pnl.value === null) return [];
      const own = by === "hour" ? Number(key) : by === "weekday" ? weekdays.indexOf(key) + 1 : key;
      return [{ key: own, net: Number(net_pnl.value), trades: Number(trades?.value ?? 0) }];
    });
}

type Traded = { readonly run: ReportedRun; readonly read: TradesRead };

/** The best or worst trades: in full for one run; for several, one column per run, and each in full to unfold. */
function extremes(
  which: "best" | "worst",
  traded: readonly Traded[],
  currency: string,
  isOnly: boolean,
): Html {
  const most = Math.max(...traded.map(({ read }) => read[which].length));
  if (most === 0) return html`<p class="note">No ${which === "best" ? "winning" : "losing"} trade.</p>\n`;
  const caption = `${rankedText(most, which)}${isOnly ? "" : " of each run"}, in ${currency}`;
  if (isOnly) return tradeTable(caption, traded[0]!.read[which]);
  const table = comparedTable({
    caption,
    head: "Rank",
    runs: traded.map(({ run }) => runHead(run, false)),
    rows: Array.from({ length: most }, (_, rank) => ({
      ...{ key: String(rank + 1), name: "" },
      cells: traded.map(({ read }) => {
        const trade = read[which][rank];
        if (trade === undefined) return "–";
        const { symbol, isLong, entry, exit, net } = trade;
        return html`${money(net)}<span class="of">${symbol}</span><span class="of">${isLong ? "long" : "short"}, ${durationText(Number(exit - entry) / 1e9)}</span>`;
      }),
    })),
  });
  const full = traded.map(({ run, read }) => {
    if (read[which].length === 0) return nothing;
    const own = `${rankedText(read[which].length, which)} of ${run.label} ${run.name}, in ${currency}`;
    return html`<details><summary>${rankedText(read[which].length, which)} of ${run.label} in full</summary>
${tradeTable(own, read[which])}</details>
`;
  });
  return html`${table}${full}`;
}

function rankedText(count: number, which: string): string {
  return count === 1 ? `The ${which} trade` : `The ${count} ${which} trades`;
}

function tradeTable(caption: string, trades: readonly ToldTrade[]): Html {
  return dataTable({
    caption,
    className: "data trades",
    columns: [
      { title: "Symbol" },
      { title: "Side" },
      { title: "Entry, UTC" },
      { title: "Held", isNumber: true },
      { title: "Quantity", isNumber: true },
      { title: "Entry price", isNumber: true },
      { title: "Exit price", isNumber: true },
      { title: "Fees", isNumber: true },
      { title: "MAE", isNumber: true },
      { title: "MFE", isNumber: true },
      { title: "Net P&L", isNumber: true },
    ],
    rows: trades.map((trade) => [
      trade.symbol,
      trade.isLong ? "long" : "short",
      instantText(trade.entry),
      durationText(Number(trade.exit - trade.entry) / 1e9),
      trade.quantity,
      plain(trade.entryPrice),
      plain(trade.exitPrice),
      plain(trade.fees),
      plain(String(trade.mae)),
      plain(String(trade.mfe)),
      money(trade.net),
    ]),
  });
}

/** Money with its sign, in the colour of a gain or a loss. */
function money(value: string): Html {
  const number = Number(value);
  if (number === 0) return html`0.00`;
  return html`<span class="${number > 0 ? "gain" : "loss"}">${number > 0 ? "+" : ""}${plain(value)}</span>`;
}

function plain(value: string): string {
  const known = figure(value.includes("e") ? Number(value) : value, {
    ...{ unit: "money", convention: "", n: 0, from: 0n, to: 0n },
  });
  return figureText("money", known).replaceAll(/-(?=\d)/g, "−");
}
