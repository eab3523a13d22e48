import type { Chart, NoChart } from "./chart.ts";
import type { RollingData } from "./chart-data.ts";
import { drawChart } from "./drawing/draw-chart.ts";
import { runStroke } from "./drawing/frame.ts";
import { linePanels } from "./drawing/line-panels.ts";
import { countOf, orDash, percentText, statisticText, timeText } from "./drawing/number-text.ts";
import { indexAt, readingTimes, rowsNote } from "./drawing/readings.ts";

const id = "rolling";
const title = "Rolling Sharpe ratio and volatility";

/** Sharpe ratio and volatility of a window of returns that moves along, one above the other. */
export async function rollingChart(data: RollingData): Promise<Chart | NoChart> {
  const runs = data.runs.filter(
    ({ sharpe, volatility }) => sharpe.some(Number.isFinite) || volatility.some(Number.isFinite),
  );
  const window = countOf(data.window, data.period);
  if (runs.length === 0) return { id, title, reason: `no window of ${window} has a figure` };
  const isOne = runs.length === 1;
  const readings = readingTimes(runs).map((time) => {
    const cells: string[] = [];
    const parts = runs.map(({ name, times, sharpe, volatility }) => {
      const index = indexAt(times, time);
      const ratio = orDash(sharpe[index] ?? null, statisticText);
      const spread = orDash(volatility[index] ?? null, percentText);
      cells.push(ratio, spread);
      return `${isOne ? "" : `${name}: `}Sharpe ${ratio}, volatility ${spread}`;
    });
    return { time, cells, text: [timeText(time), ...parts].join("\n") };
  });
  const stroke = (run: number) => (isOne ? { colour: "accent" as const, dash: [] } : runStroke(run));
  return await drawChart({
    id,
    title,
    caption: [`Each point is of the ${window} up to it; per year.`, data.note ?? ""]
      .filter(Boolean)
      .join(" "),
    label: `Lines of the Sharpe ratio and the volatility of windows of ${window}: ${runs.map(({ name }) => name).join(", ")}.`,
    numbers: {
      columns: [
        "Time (UTC)",
        ...runs.flatMap(({ name }) => {
          const prefix = isOne ? "" : `${name}: `;
          return [`${prefix}Sharpe`, `${prefix}Volatility`];
        }),
      ],
      rows: readings.map(({ time, cells }) => [timeText(time), ...cells]),
      note: rowsNote(
        readings.length,
        runs.reduce((sum, { times }) => sum + times.length, 0),
        "points",
      ),
    },
    draw: (frame) =>
      linePanels(
        frame,
        [
          {
            heading: "Sharpe ratio",
            unit: "number",
            hasZero: true,
            hasLegend: !isOne,
            lines: runs.map(({ name, times, sharpe }, run) => ({
              name,
              times,
              values: sharpe,
              ...stroke(run),
            })),
          },
          {
            heading: "Volatility",
            unit: "percent",
            hasZero: false,
            hasLegend: false,
            lines: runs.map(({ name, times, volatility }, run) => ({
              name,
              times,
              values: volatility,
              ...stroke(run),
            })),
          },
        ],
        readings,
      ),
  });
}
