import { type Figure, noFigure } from "../../analytics/figure.ts";
import { figureLabel } from "../../analytics/render/figure-text.ts";
import { signedText } from "../page/figure-cell.ts";
import { type Html, html, nothing } from "../page/html.ts";
import { withInstants } from "../page/time-text.ts";
import { notes, overPanels } from "./page-section.ts";
import { groupOf, type Panel, type Reported, sectionOf } from "./reported.ts";

/** The eight figures, each with its section. */
const figures = [
  ["performance", "total_return"],
  ["performance", "cagr"],
  ["performance", "sharpe"],
  ["performance", "sortino"],
  ["performance", "max_drawdown"],
  ["performance", "volatility"],
  ["trades", "profit_factor"],
  ["trades", "fees"],
] as const;

/** The eight figures of each panel, with those of other runs or of the previous run below. */
export async function headline(reported: Reported, panels: readonly Panel[]): Promise<Html> {
  const { previous } = reported;
  // orders with an unclear currency have none of these figures
  const headed = panels.filter(({ members }) =>
    members.some(({ run, key }) =>
      figures.some(([section]) => groupOf(run.told, section, key) !== undefined),
    ),
  );
  const grids = await overPanels(headed.length === 0 ? panels : headed, (panel) => grid(panel, reported));
  const before =
    previous === null
      ? []
      : "reason" in previous
        ? [previous.reason]
        : [`Below: the previous run, ${previous.told.run}.`];
  return html`<section id="figures" aria-labelledby="figures-title">\n<h2 id="figures-title" class="unseen">Figures</h2>\n${grids}${notes(panels.length === 0 ? [] : [conventionsOf(reported), ...before])}</section>\n`;
}

function conventionsOf({ runs }: Reported): string {
  const told = runs[0]!.told;
  const of = (name: string) => sectionOf(told, name)?.conventions ?? "";
  return `Returns: ${of("performance")}. Trades: ${of("trades")}.`;
}

function grid(panel: Panel, { previous }: Reported): Html {
  const { members } = panel;
  const isOnly = members.length === 1;
  const cells = figures.map(([section, name]) => {
    const told = members.map(({ run, key }) => {
      const figure =
        groupOf(run.told, section, key)?.figures[name] ??
        noFigure(sectionOf(run.told, section)?.absent ?? missing[section]);
      return { run, figure, text: headText(name, figure) };
    });
    const money =
      name === "fees" ? told.flatMap(({ figure }) => (figure.value === null ? [] : figure.unit)) : [];
    // the same size for all runs
    const length = Math.max(...told.map(({ text }) => text.length));
    const long = length > 11 ? " longest" : length > 8 ? " long" : "";
    const values = told.map(({ run, figure, text }) => {
      const swatch = isOnly ? nothing : html`<span class="swatch run-${run.number}"></span>`;
      const shown = html`<span class="value${long}">${swatch}${text}</span>`;
      return figure.value === null && isOnly
        ? html`${shown}<span class="reason">${withInstants(figure.reason)}</span>`
        : shown;
    });
    const label = [figureLabel(name), ...new Set(money)].join(", ");
    return html`<div><dt>${label}</dt><dd>${values}${beneath(section, name, panel, previous)}</dd></div>\n`;
  });
  return html`<dl class="eight${isOnly ? "" : " several"}">\n${cells}</dl>\n`;
}

/** As elsewhere, but without decimals after many digits, because there is no room. */
function headText(name: string, figure: Figure): string {
  return signedText(name, figure).replace(/(\d,\d{3}|\d{5})\.\d+/, "$1");
}

const missing = { performance: "no equity rows of it", trades: "no fills" } as const;

/** The same figure of the previous run. */
function beneath(section: string, name: string, { members }: Panel, previous: Reported["previous"]): Html {
  const [only] = members;
  if (previous === null || "reason" in previous || only === undefined) return nothing;
  const figure = groupOf(previous.told, section, only.key)?.figures[name];
  if (figure === undefined) return nothing;
  return html`<span class="before">before ${headText(name, figure)}</span>`;
}
