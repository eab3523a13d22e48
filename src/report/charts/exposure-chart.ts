import type { Chart, NoChart } from "./chart.ts";
import type { ExposureData } from "./chart-data.ts";
import { drawChart } from "./drawing/draw-chart.ts";
import { runStroke } from "./drawing/frame.ts";
import { type LinePanel, linePanels } from "./drawing/line-panels.ts";
import { amountText, orDash, percentText, timeText } from "./drawing/number-text.ts";
import { indexAt, readingTimes, rowsNote } from "./drawing/readings.ts";

const id = "exposure";
const title = "Exposure";

/** What was held over time, gross and net: of one run on the same axes, of several apart. */
export async function exposureChart(data: ExposureData): Promise<Chart | NoChart> {
  const runs = data.runs.filter(({ gross, net }) => gross.some(Number.isFinite) || net.some(Number.isFinite));
  if (runs.length === 0) return { id, title, reason: "no positions" };
  const isOne = runs.length === 1;
  const isRatio = data.unit === "ratio";
  const unit = isRatio ? "percent" : "number";
  const text = isRatio ? percentText : amountText;
  const what = isRatio ? "as a share of equity" : `in ${data.unit}`;
  const readings = readingTimes(runs).map((time) => {
    const cells: string[] = [];
    const parts = runs.map(({ name, times, gross, net }) => {
      const index = indexAt(times, time);
      const [all, rest] = [orDash(gross[index] ?? null, text), orDash(net[index] ?? null, text)];
      cells.push(all, rest);
      return `${isOne ? "" : `${name}: `}gross ${all}, net ${rest}`;
    });
    return { time, cells, text: [timeText(time), ...parts].join("\n") };
  });
  const lines = (of: "gross" | "net") =>
    runs.map(({ name, times, ...values }, run) => ({
      name,
      times,
      values: values[of],
      isStep: true,
      ...runStroke(run),
    }));
  const panels = (): LinePanel[] => {
    if (!isOne) {
      return [
        { heading: "Gross", unit, hasZero: true, hasLegend: true, lines: lines("gross") },
        { heading: "Net", unit, hasZero: true, hasLegend: false, lines: lines("net") },
      ];
    }
    const [{ times, gross, net }] = runs as [(typeof runs)[0]];
    const line = { times, dash: [], isStep: true };
    return [
      {
        heading: isRatio ? "Share of equity" : data.unit,
        unit,
        hasZero: true,
        hasLegend: true,
        lines: [
          { ...line, name: "Gross", values: gross, colour: "muted", isArea: true },
          { ...line, name: "Net", values: net, colour: "accent" },
        ],
      },
    ];
  };
  return await drawChart({
    id,
    title,
    caption: [
      `Value of the positions ${what}: gross is long and short added, net is long less short.`,
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Lines of gross and net exposure ${what}: ${runs.map(({ name }) => name).join(", ")}.`,
    numbers: {
      columns: [
        "Time (UTC)",
        ...runs.flatMap(({ name }) => {
          const prefix = isOne ? "" : `${name}: `;
          return [`${prefix}Gross`, `${prefix}Net`];
        }),
      ],
      rows: readings.map(({ time, cells }) => [timeText(time), ...cells]),
      note: rowsNote(
        readings.length,
        runs.reduce((sum, { times }) => sum + times.length, 0),
        "points",
      ),
    },
    draw: (frame) => linePanels(frame, panels(), readings),
  });
}
