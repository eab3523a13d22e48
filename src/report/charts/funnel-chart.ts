import type { Chart, NoChart } from "./chart.ts";
import type { FunnelData } from "./chart-data.ts";
import { type BarRow, barRows } from "./drawing/bar-rows.ts";
import { drawChart } from "./drawing/draw-chart.ts";
import { countOf, countText, numberText } from "./drawing/number-text.ts";

const id = "order-funnel";
const title = "What became of the orders";

/** Orders by their last state: each bar begins where the one above it ends, so that one sees them add up. */
export async function funnelChart(data: FunnelData): Promise<Chart | NoChart> {
  const states = data.states.filter(({ orders }) => orders > 0);
  const submitted = states.reduce((sum, { orders }) => sum + orders, 0);
  if (submitted === 0) return { id, title, reason: "no orders" };
  const share = (orders: number) => numberText(orders / submitted, ".1%");
  const say = (state: string, orders: number) =>
    `${state}: ${countOf(orders, "order")}, ${share(orders)} of those submitted`;
  let before = 0;
  const rows = [{ state: "Submitted", orders: submitted }, ...states].map(
    ({ state, orders }, index): BarRow => {
      const from = index === 0 ? 0 : before;
      if (index > 0) before += orders;
      return {
        label: state,
        from,
        to: from + orders,
        colour: index === 0 ? "muted" : "accent",
        value: `${countText(orders)} · ${share(orders)}`,
        text: index === 0 ? `${countOf(orders, "order")} submitted` : say(state, orders),
      };
    },
  );
  return await drawChart({
    id,
    title,
    caption: ["Orders by their last state, which add up to those submitted.", data.note ?? ""]
      .filter(Boolean)
      .join(" "),
    label: `Bars: ${countOf(submitted, "order")} submitted; ${states.map(({ state, orders }) => say(state, orders)).join("; ")}.`,
    numbers: {
      columns: ["Last state", "Orders", "Share"],
      rows: [
        ...states.map(({ state, orders }) => [state, countText(orders), share(orders)]),
        ["Submitted", countText(submitted), share(submitted)],
      ],
      note: "",
    },
    draw: (frame) => barRows(frame, [{ heading: null, rows }], { axisTitle: "Orders", isWhole: true }),
  });
}
