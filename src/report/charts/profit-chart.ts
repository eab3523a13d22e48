import type { Chart, NoChart } from "./chart.ts";
import type { OfRun, ProfitData, ProfitGroup } from "./chart-data.ts";
import { type BarGroup, barRows } from "./drawing/bar-rows.ts";
import { columnBars } from "./drawing/column-bars.ts";
import { drawChart } from "./drawing/draw-chart.ts";
import type { Colour } from "./drawing/frame.ts";
import { amountText, countOf, countText } from "./drawing/number-text.ts";
import { noDataSentence, runEntries, runLook, runPrefix } from "./drawing/run-look.ts";

type Key = ProfitGroup["key"];
type Run = OfRun & { readonly groups: readonly ProfitGroup[] };

const weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/** Most keys below each other, or bars for several runs; the rest share one more. */
const mostKeys = 20;
const mostBars = 48;

/** Net P&L of trades by a common property: hours and weekdays in their order, everything else largest first. */
export async function profitChart(data: ProfitData): Promise<Chart | NoChart> {
  const { by, currency } = data;
  const id = `profit-by-${by}`;
  const title = `P&L by ${by}`;
  const isOne = data.runs.length === 1;
  const known = data.runs
    .map((run) => ({ ...run, groups: run.groups.filter(({ net }) => Number.isFinite(net)) }))
    .filter(({ groups }) => groups.length > 0);
  if (known.length === 0) return { id, title, reason: "no trades" };
  const isClock = by === "hour" || by === "weekday";
  const runs = isClock ? known : gathered(known);
  const keys = isClock ? clockKeys(by) : largestFirst(runs);
  const of = (run: Run, key: Key) => run.groups.find((group) => String(group.key) === String(key));
  const name = (key: Key) => {
    if (by === "hour") return `${String(key).padStart(2, "0")}:00`;
    return by === "weekday" ? weekdays[Number(key) - 1]! : String(key);
  };
  const say = (run: Run, key: Key) => {
    const { net = 0, trades = 0 } = of(run, key) ?? {};
    return `${runPrefix(run, isOne)}${name(key)}: ${amountText(net)} ${currency}, ${countOf(trades, "trade")}`;
  };
  const colour = (run: Run, net: number): Colour =>
    isOne ? (net < 0 ? "loss" : "gain") : runLook(run, isOne).colour;
  return await drawChart({
    id,
    title,
    caption: [
      `Net of fees, in ${currency}${isClock ? ", by the exit's time in UTC" : ""}.`,
      noDataSentence(data.runs, runs),
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Bars of net P&L by ${by}: ${runs.flatMap((run) => keys.slice(0, 8).map((key) => say(run, key))).join("; ")}.`,
    numbers: {
      columns: [
        by === "hour" ? "Hour (UTC)" : `${by.charAt(0).toUpperCase()}${by.slice(1)}`,
        ...runs.flatMap((run) => [
          `${runPrefix(run, isOne)}Net P&L, ${currency}`,
          `${runPrefix(run, isOne)}Trades`,
        ]),
      ],
      rows: keys.map((key) => [
        name(key),
        ...runs.flatMap((run) => {
          const { net = 0, trades = 0 } = of(run, key) ?? {};
          return [amountText(net), countText(trades)];
        }),
      ]),
      note: "",
    },
    draw: (frame) => {
      const entries = runEntries(runs, isOne, frame);
      if (isClock) {
        const bars = keys.flatMap((key) =>
          runs.map((run) => {
            const { net = 0 } = of(run, key) ?? {};
            return {
              ...{ key: Number(key), lane: run.number, value: net },
              ...{ colour: colour(run, net), text: say(run, key) },
            };
          }),
        );
        return columnBars(frame, bars, {
          labelExpr:
            by === "hour" ? "format(datum.value, '02d')" : `['${weekdays.join("','")}'][datum.value - 1]`,
          labelEvery: by === "hour" && frame.isNarrow ? 3 : 1,
          heading: currency,
          legend: entries,
        });
      }
      const groups = keys.map(
        (key): BarGroup => ({
          label: name(key),
          bars: runs.map((run) => {
            const group = of(run, key);
            const { net = 0, trades = 0 } = group ?? {};
            const value = frame.isNarrow
              ? amountText(net)
              : `${amountText(net)} · ${countOf(trades, "trade")}`;
            return {
              ...{ from: 0, to: net, colour: colour(run, net), text: say(run, key) },
              value: group === undefined ? "–" : value,
            };
          }),
        }),
      );
      return barRows(frame, [{ heading: null, groups }], { axisTitle: currency, legend: entries });
    },
  });
}

/** All hours or weekdays, including those without trades. */
function clockKeys(by: "hour" | "weekday"): readonly Key[] {
  return by === "hour"
    ? Array.from({ length: 24 }, (_, hour) => hour)
    : weekdays.map((_, index) => index + 1);
}

/** From the largest gain of all runs together to the largest loss. */
function largestFirst(runs: readonly Run[]): readonly Key[] {
  const sums = sumsOf(runs);
  return [...sums].sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1)).map(([key]) => key);
}

function sumsOf(runs: readonly Run[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const { key, net } of runs.flatMap(({ groups }) => groups)) {
    sums.set(String(key), (sums.get(String(key)) ?? 0) + net);
  }
  return sums;
}

/** If there are many keys, joins those in the middle, run by run. */
function gathered(runs: readonly Run[]): readonly Run[] {
  const keys = largestFirst(runs).map(String);
  const half = Math.max(1, Math.floor(Math.min(mostKeys, mostBars / runs.length) / 2));
  if (keys.length <= half * 2) return runs;
  const middle = new Set(keys.slice(half, -half));
  return runs.map((run) => {
    const rest = run.groups.filter(({ key }) => middle.has(String(key)));
    return {
      ...run,
      groups: [
        ...run.groups.filter(({ key }) => !middle.has(String(key))),
        {
          key: `${middle.size} others`,
          net: rest.reduce((sum, { net }) => sum + net, 0),
          trades: rest.reduce((sum, { trades }) => sum + trades, 0),
        },
      ],
    };
  });
}
