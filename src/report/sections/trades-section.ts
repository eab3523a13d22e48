import { figure } from "../../analytics/figure.ts";
import { spanText as durationText, figureText } from "../../analytics/render/figure-text.ts";
import { grouped } from "../../model/text/number-text.ts";
import { agreeing, plural } from "../../model/text/plural.ts";
import { excursionsChart } from "../charts/excursions-chart.ts";
import { profitChart } from "../charts/profit-chart.ts";
import { dataTable } from "../page/data-table.ts";
import { figuresTable } from "../page/figures-table.ts";
import { type Html, html } from "../page/html.ts";
import { instantText } from "../page/time-text.ts";
import type { ToldTrade } from "../read/read-trades.ts";
import {
  absences,
  empty,
  notes,
  overPanels,
  type PageParts,
  type PageSection,
  runHead,
} from "./page-section.ts";
import { type Group, groupOf, isSameKey, type Panel, type ReportedRun, sectionOf } from "./reported.ts";

const names = [
  ...["trades", "open_trades", "net_pnl", "closed_net_pnl", "hit_rate", "profit_factor", "payoff"],
  ...["expectancy", "holding_time", "fees", "turnover"],
];
const breakdowns = ["symbol", "hour", "weekday"] as const;
const weekdays = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/** What trades made, how far they went, and the best and worst of them. */
export const tradesSection: PageSection = {
  id: "trades",
  title: "Trades",
  render: async (page: PageParts) => {
    const { runs } = page.reported;
    const told = page.panels.filter(({ members }) => tradedBy(members).length > 0);
    const said = runs.flatMap((run) => sectionOf(run.told, "trades")?.notes ?? []);
    if (told.length === 0) return empty(absences(runs, "trades")[0] ?? "no fills");
    const conventions = sectionOf(runs[0]!.told, "trades")?.conventions ?? "";
    const body = await overPanels(told, (panel) => panelHtml(panel, page));
    return html`<p class="note">Trades are ${conventions}.</p>\n${body}${notes(said.filter((text) => text !== "no fills"))}`;
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
  const members = tradedBy(panel.members);
  const isOnly = members.length === 1;
  const columns = members.map(({ run, group }) => ({
    title: isOnly ? "Value" : runHead(run, false),
    name: isOnly ? "" : run.label,
    figures: group.figures,
  }));
  const parts: Html[] = [figuresTable("Figures of the trades", columns, names)];
  for (const { run, key, group } of members) {
    const own = run.read.trades.find((read) => isSameKey(read, key));
    if (own === undefined) continue;
    const chart = await excursionsChart({
      ...{ currency, grouping: reported.options.group, mae: own.mae, mfe: own.mfe, net: own.net },
      note:
        own.fromFills === 0
          ? "From whole bars between entry and exit, and the trades' own fills."
          : `From whole bars between entry and exit; of ${grouped(own.fromFills)} ${plural(own.fromFills, "trade")} without one, from ${agreeing(own.fromFills, "its", "their")} fills alone.`,
    });
    parts.push(drawings.add(chart, isOnly ? chart.title : `${run.label} ${run.name}: ${chart.title}`));
    if (isOnly) {
      for (const by of breakdowns) {
        const groups = profits(group, by);
        // all trades in one symbol: that is the figure above
        if (by === "symbol" && groups.length < 2) continue;
        const profit = await profitChart({ currency, by, groups });
        parts.push(drawings.add(profit, profit.title));
      }
    }
    parts.push(...extremes(run, own.best, own.worst, currency, isOnly));
  }
  if (!isOnly) for (const by of breakdowns) parts.push(comparedBy(by, members));
  return html`${parts}`;
}

function profits(group: Group, by: (typeof breakdowns)[number]) {
  return group.parts
    .filter((part) => part.by === by)
    .flatMap(({ key, figures: { net_pnl, trades } }) => {
      if (net_pnl === undefined || net_pnl.value === null) return [];
      const own = by === "hour" ? Number(key) : by === "weekday" ? weekdays.indexOf(key) + 1 : key;
      return [{ key: own, net: Number(net_pnl.value), trades: Number(trades?.value ?? 0) }];
    });
}

/** Net P&L of closed trades by what they have in common, a column a run. */
function comparedBy(by: (typeof breakdowns)[number], members: readonly Member[]): Html {
  const partsOf = (group: Group) => group.parts.filter((part) => part.by === by);
  const keys = [...new Set(members.flatMap(({ group }) => partsOf(group).map(({ key }) => key)))];
  keys.sort((a, b) => (by === "weekday" ? weekdays.indexOf(a) - weekdays.indexOf(b) : a < b ? -1 : 1));
  return dataTable({
    caption: `Net P&L by ${by}`,
    columns: [{ title: by }, ...members.map(({ run }) => ({ title: runHead(run, false), isNumber: true }))],
    rows: keys.map((key) => [
      key,
      ...members.map(({ group }) => {
        const found = partsOf(group).find((part) => part.key === key)?.figures.net_pnl;
        return found === undefined || found.value === null ? "–" : money(String(found.value));
      }),
    ]),
  });
}

function extremes(
  run: ReportedRun,
  best: readonly ToldTrade[],
  worst: readonly ToldTrade[],
  currency: string,
  isOnly: boolean,
): readonly Html[] {
  const of = isOnly ? "" : ` of ${run.label} ${run.name}`;
  return [
    best.length === 0
      ? html`<p class="note">No winning trade${of}.</p>\n`
      : tradeTable(`${rankedText(best.length, "best")}${of}, in ${currency}`, best),
    worst.length === 0
      ? html`<p class="note">No losing trade${of}.</p>\n`
      : tradeTable(`${rankedText(worst.length, "worst")}${of}, in ${currency}`, worst),
  ];
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
