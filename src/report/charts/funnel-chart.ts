import type { Chart, NoChart } from "./chart.ts";
import type { FunnelData, OfRun } from "./chart-data.ts";
import { type BarGroup, barRows } from "./drawing/bar-rows.ts";
import { drawChart } from "./drawing/draw-chart.ts";
import { countOf, countText, numberText } from "./drawing/number-text.ts";
import { noDataSentence, runEntries, runLook, runPrefix } from "./drawing/run-look.ts";

const id = "order-funnel";
const title = "Outcome of the orders";

/**
 * Orders by their last state: each bar begins where the one above it ends, which shows that they add up. Several runs
 * are shown as shares of their orders, because their numbers differ.
 */
export async function funnelChart(data: FunnelData): Promise<Chart | NoChart> {
  const isOne = data.runs.length === 1;
  const runs = data.runs.flatMap((run) => funnelOf(run) ?? []);
  if (runs.length === 0) return { id, title, reason: "no orders" };
  const states = [...new Set(runs.flatMap(({ stages }) => stages.map(({ state }) => state)))];
  return await drawChart({
    id,
    title,
    caption: [
      isOne
        ? "Orders by their last state, which add up to those submitted."
        : "Orders by their last state, as shares of the orders that each run submitted.",
      noDataSentence(data.runs, runs),
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Bars: ${runs.map((run) => `${runPrefix(run, isOne)}${countOf(run.submitted, "order")} submitted; ${run.stages.map((stage) => say(run, stage)).join("; ")}`).join("; ")}.`,
    numbers: {
      columns: [
        "Last state",
        ...runs.flatMap((run) => [`${runPrefix(run, isOne)}Orders`, `${runPrefix(run, isOne)}Share`]),
      ],
      rows: [
        ...states.map((state) => [
          state,
          ...runs.flatMap((run) => {
            const orders = run.stages.find((stage) => stage.state === state)?.orders ?? 0;
            return [countText(orders), share(run, orders)];
          }),
        ]),
        ["Submitted", ...runs.flatMap((run) => [countText(run.submitted), share(run, run.submitted)])],
      ],
      note: "",
    },
    draw: (frame) => {
      const bar = (run: Funnel, stage: Stage | undefined, isAll = false) => ({
        from: (stage?.from ?? 0) / (isOne ? 1 : run.submitted),
        to: (stage === undefined ? 0 : stage.from + stage.orders) / (isOne ? 1 : run.submitted),
        colour: isAll && isOne ? ("muted" as const) : runLook(run, isOne).colour,
        value: stage === undefined ? "–" : `${countText(stage.orders)} · ${share(run, stage.orders)}`,
        text:
          stage === undefined
            ? `${runPrefix(run, isOne)}none`
            : isAll
              ? `${runPrefix(run, isOne)}${countOf(run.submitted, "order")} submitted`
              : `${runPrefix(run, isOne)}${say(run, stage)}`,
      });
      const groups: BarGroup[] = [
        ...(isOne
          ? [
              {
                label: "Submitted",
                bars: runs.map((run) =>
                  bar(run, { state: "Submitted", orders: run.submitted, from: 0 }, true),
                ),
              },
            ]
          : []),
        ...states.map((state) => ({
          label: state,
          bars: runs.map((run) =>
            bar(
              run,
              run.stages.find((stage) => stage.state === state),
            ),
          ),
        })),
      ];
      return barRows(frame, [{ heading: null, groups }], {
        ...(isOne
          ? { axisTitle: "Orders", isWhole: true }
          : { axisTitle: "Share of the run's orders", unit: "percent" }),
        legend: runEntries(runs, isOne, frame),
      });
    },
  });
}

interface Stage {
  readonly state: string;
  readonly orders: number;
  /** The orders of the states before it. */
  readonly from: number;
}

interface Funnel extends OfRun {
  readonly submitted: number;
  readonly stages: readonly Stage[];
}

function funnelOf({ states, ...run }: FunnelData["runs"][number]): Funnel | null {
  let submitted = 0;
  const stages = states
    .filter(({ orders }) => orders > 0)
    .map(({ state, orders }) => {
      const from = submitted;
      submitted += orders;
      return { state, orders, from };
    });
  return submitted === 0 ? null : { ...run, submitted, stages };
}

function share({ submitted }: Funnel, orders: number): string {
  return numberText(orders / submitted, ".1%");
}

function say(run: Funnel, { state, orders }: Stage): string {
  return `${state}: ${countOf(orders, "order")}, ${share(run, orders)} of those submitted`;
}
