import { countText } from "../../model/text/plural.ts";
import { informationChart } from "../charts/information-chart.ts";
import { quantilesChart } from "../charts/quantiles-chart.ts";
import { type Html, html } from "../page/html.ts";
import {
  absences,
  chartRun,
  empty,
  notes,
  type PageParts,
  type PageSection,
  runNotes,
} from "./page-section.ts";
import { numberOf, type Part, partsTable } from "./part-tables.ts";
import { type Group, keyText, type ReportedRun, sectionOf } from "./reported.ts";

const tables = [
  ["factor", "Coverage", "Factor"],
  ["distribution", "Distribution of the finite values", "Factor"],
  ["moments", "Moments", "Factor"],
  ["factor_symbol", "Coverage and autocorrelation by symbol", "Factor, symbol, venue"],
  ["ic_across_symbols", "Information coefficient across symbols", "Factor, horizon"],
  ["ic_through_time", "Information coefficient through time", "Factor, horizon, symbol, venue"],
  ["quantiles", "Quantiles: spread and stability", "Factor, horizon"],
  ["quantile", "Returns by quantile", "Factor, horizon, quantile"],
] as const;

/** The values of factors, and prices after them. */
export const factorsSection: PageSection = {
  id: "factors",
  title: "Factors",
  render: async ({ reported: { runs }, drawings }: PageParts) => {
    const isOnly = runs.length === 1;
    const groups = runs.flatMap((run) =>
      (sectionOf(run.told, "factors")?.groups ?? []).map((group) => ({ run, group })),
    );
    const said = (run: ReportedRun) => sectionOf(run.told, "factors")?.notes ?? [];
    const absent = absences(runs, "factors");
    if (groups.length === 0) return empty(absent[0] ?? runs.flatMap(said)[0] ?? "no factors");
    const conventions = sectionOf(runs[0]!.told, "factors")?.conventions ?? "";
    const byKey = Map.groupBy(groups, ({ group }) => keyText(group));
    const body: Html[] = [];
    for (const [key, own] of byKey) {
      if (byKey.size > 1 && key !== "") body.push(html`<h3>${key}</h3>\n`);
      body.push(await groupsHtml(own, runs, drawings, isOnly));
    }
    return html`${notes([conventions])}${body}${notes(isOnly ? [] : absent)}${runNotes(runs, said)}`;
  },
};

async function groupsHtml(
  groups: readonly { readonly run: ReportedRun; readonly group: Group }[],
  runs: readonly ReportedRun[],
  drawings: PageParts["drawings"],
  isOnly: boolean,
): Promise<Html> {
  const body: Html[] = [];
  const by = (run: ReportedRun, name: string): readonly Part[] =>
    groups.find((each) => each.run === run)?.group.parts.filter((part) => part.by === name) ?? [];
  const information = await informationChart({
    runs: runs.map((run) => ({ ...chartRun(run), factors: coefficients((name) => by(run, name)) })),
  });
  if (!("reason" in information)) body.push(drawings.add(information, information.title));
  const horizons = new Set(
    runs.flatMap((run) => by(run, "quantile").flatMap((part) => quantileOf(part)?.horizon ?? [])),
  );
  for (const horizon of horizons) {
    const chart = await quantilesChart({
      horizon,
      runs: runs.map((run) => ({ ...chartRun(run), factors: quantiles(by(run, "quantile"), horizon) })),
    });
    const after = `${chart.title}, ${countText(horizon, "bar")}`;
    if (!("reason" in chart)) body.push(drawings.add(chart, after));
  }
  for (const [name, caption, head] of tables) {
    body.push(
      partsTable(
        caption,
        head,
        groups.map(({ run }) => ({ run, parts: by(run, name) })),
        isOnly,
      ),
    );
  }
  return html`${body}`;
}

type By = (name: string) => readonly Part[];

/** The coefficients across symbols if there are any, otherwise those of each symbol over time. */
function coefficients(by: By) {
  const across = by("ic_across_symbols").filter((part) => numberOf(part, "ic") !== null);
  const parts = across.length > 0 ? across : by("ic_through_time");
  const found = parts.flatMap((part) => {
    // FACTOR, N bars, and then the symbol
    const match = /^(.*) (\d+) bars?(?: (.*))?$/s.exec(part.key);
    const { ic } = part.figures;
    if (match === null || ic === undefined) return [];
    const [, factor = "", bars = "", of = ""] = match;
    const value = numberOf(part, "ic");
    const t = numberOf(part, "ic_t");
    return [
      {
        factor: [factor, of].filter(Boolean).join(" "),
        horizon: Number(bars),
        ic: value,
        error: value === null || t === null || t === 0 ? null : value / t,
        n: ic.value === null ? 0 : ic.n,
      },
    ];
  });
  return [...Map.groupBy(found, ({ factor }) => factor)].map(([factor, own]) => ({
    factor,
    horizons: own.map(({ horizon, ic, error, n }) => ({ horizon, ic, error, n })),
  }));
}

function quantileOf({ key }: Part) {
  const match = /^(.*) (\d+) bars? (\d+)$/s.exec(key);
  return match === null
    ? null
    : { factor: match[1] ?? "", horizon: Number(match[2]), quantile: Number(match[3]) };
}

function quantiles(parts: readonly Part[], horizon: number) {
  const found = parts.flatMap((part) => {
    const of = quantileOf(part);
    const figure = part.figures.mean_return;
    if (of === null || of.horizon !== horizon || figure === undefined) return [];
    return [{ ...of, mean: numberOf(part, "mean_return"), n: figure.value === null ? 0 : figure.n }];
  });
  return [...Map.groupBy(found, ({ factor }) => factor)].map(([factor, own]) => ({
    factor,
    quantiles: own.map(({ quantile, mean, n }) => ({ quantile, mean, n })),
  }));
}
