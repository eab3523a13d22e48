import type { Chart, NoChart } from "./chart.ts";
import type { ProfitData } from "./chart-data.ts";
import { type BarRow, barRows } from "./drawing/bar-rows.ts";
import { columnBars } from "./drawing/column-bars.ts";
import { drawChart } from "./drawing/draw-chart.ts";
import { amountText, countOf, countText } from "./drawing/number-text.ts";

type Group = ProfitData["groups"][number];

const weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/** So many bars beneath each other; the rest together are one more. */
const mostRows = 20;

/** Net P&L of trades by what they have in common: of hours and weekdays in their order, of all else the largest first. */
export async function profitChart(data: ProfitData): Promise<Chart | NoChart> {
  const { by, currency } = data;
  const id = `profit-by-${by}`;
  const title = `P&L by ${by}`;
  const known = data.groups.filter(({ net }) => Number.isFinite(net));
  if (known.length === 0) return { id, title, reason: "no trades" };
  const isClock = by === "hour" || by === "weekday";
  const groups = isClock ? everyKey(known, by) : largestFirst(known);
  const name = ({ key }: Group) => {
    if (by === "hour") return `${String(key).padStart(2, "0")}:00`;
    return by === "weekday" ? weekdays[Number(key) - 1]! : String(key);
  };
  const say = (group: Group) =>
    `${name(group)}: ${amountText(group.net)} ${currency}, ${countOf(group.trades, "trade")}`;
  const colour = ({ net }: Group) => (net < 0 ? ("loss" as const) : ("gain" as const));
  return await drawChart({
    id,
    title,
    caption: [`Net of fees, in ${currency}${isClock ? ", by the exit's time in UTC" : ""}.`, data.note ?? ""]
      .filter(Boolean)
      .join(" "),
    label: `Bars of net P&L by ${by}: ${groups.slice(0, 8).map(say).join("; ")}.`,
    numbers: {
      columns: [
        by === "hour" ? "Hour (UTC)" : `${by.charAt(0).toUpperCase()}${by.slice(1)}`,
        `Net P&L, ${currency}`,
        "Trades",
      ],
      rows: groups.map((group) => [name(group), amountText(group.net), countText(group.trades)]),
      note: "",
    },
    draw: (frame) =>
      isClock
        ? columnBars(
            frame,
            groups.map((group) => ({
              key: Number(group.key),
              value: group.net,
              colour: colour(group),
              text: say(group),
            })),
            {
              labelExpr:
                by === "hour" ? "format(datum.value, '02d')" : `['${weekdays.join("','")}'][datum.value - 1]`,
              labelEvery: by === "hour" && frame.isNarrow ? 3 : 1,
              heading: currency,
            },
          )
        : barRows(
            frame,
            [
              {
                heading: null,
                rows: groups.map(
                  (group): BarRow => ({
                    label: name(group),
                    from: 0,
                    to: group.net,
                    colour: colour(group),
                    value: frame.isNarrow
                      ? amountText(group.net)
                      : `${amountText(group.net)} · ${countOf(group.trades, "trade")}`,
                    text: say(group),
                  }),
                ),
              },
            ],
            { axisTitle: currency },
          ),
  });
}

/** All hours, or all weekdays, with nothing where there was none. */
function everyKey(groups: readonly Group[], by: "hour" | "weekday"): Group[] {
  const keys =
    by === "hour" ? Array.from({ length: 24 }, (_, hour) => hour) : weekdays.map((_, index) => index + 1);
  return keys.map((key) => groups.find((group) => Number(group.key) === key) ?? { key, net: 0, trades: 0 });
}

/** From the largest gain to the largest loss; where there are many, those in the middle as one. */
function largestFirst(groups: readonly Group[]): Group[] {
  const sorted = groups.toSorted((a, b) => b.net - a.net || (String(a.key) < String(b.key) ? -1 : 1));
  if (sorted.length <= mostRows) return sorted;
  const [best, worst] = [sorted.slice(0, mostRows / 2), sorted.slice(-mostRows / 2)];
  const middle = sorted.slice(mostRows / 2, -mostRows / 2);
  const rest: Group = {
    key: `${middle.length} others`,
    net: middle.reduce((sum, { net }) => sum + net, 0),
    trades: middle.reduce((sum, { trades }) => sum + trades, 0),
  };
  return [...best, rest, ...worst];
}
