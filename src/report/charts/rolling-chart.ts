import type { Chart, NoChart } from "./chart.ts";
import type { RollingData } from "./chart-data.ts";
import { acrossWeekends } from "./drawing/across-weekends.ts";
import { drawChart } from "./drawing/draw-chart.ts";
import { linePanels } from "./drawing/line-panels.ts";
import { countOf, orDash, percentText, statisticText, timeText } from "./drawing/number-text.ts";
import { indexAt, readingTimes, rowsNote } from "./drawing/readings.ts";
import { noDataSentence, runEntries, runLook, runPrefix } from "./drawing/run-look.ts";

const id = "rolling";
const title = "Rolling Sharpe ratio and volatility";

/** Sharpe ratio and volatility of a rolling window of returns, one above the other. */
export async function rollingChart(data: RollingData): Promise<Chart | NoChart> {
  const runs = data.runs.filter(
    ({ sharpe, volatility }) => sharpe.some(Number.isFinite) || volatility.some(Number.isFinite),
  );
  const window = countOf(data.window, data.period);
  if (runs.length === 0) return { id, title, reason: `no window of ${window} has a figure` };
  const isOne = data.runs.length === 1;
  const readings = readingTimes(runs).map((time) => {
    const cells: string[] = [];
    const parts = runs.map((run) => {
      const { times, sharpe, volatility } = run;
      const index = indexAt(times, time);
      const ratio = orDash(sharpe[index] ?? null, statisticText);
      const spread = orDash(volatility[index] ?? null, percentText);
      cells.push(ratio, spread);
      return `${runPrefix(run, isOne)}Sharpe ${ratio}, volatility ${spread}`;
    });
    return { time, cells, text: [timeText(time), ...parts].join("\n") };
  });
  return await drawChart({
    id,
    title,
    caption: [
      `Each point covers the ${window} up to it; per year.`,
      noDataSentence(data.runs, runs),
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Lines of the Sharpe ratio and the volatility of windows of ${window}: ${runs.map(({ name }) => name).join(", ")}.`,
    numbers: {
      columns: [
        "Time (UTC)",
        ...runs.flatMap((run) => {
          const prefix = runPrefix(run, isOne);
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
            names: runEntries(runs, isOne, frame, "line"),
            lines: runs.map((run) => ({
              ...{ name: "", ...acrossWeekends(run.times, run.sharpe) },
              ...runLook(run, isOne),
            })),
          },
          {
            heading: "Volatility",
            unit: "percent",
            hasZero: false,
            lines: runs.map((run) => ({
              ...{ name: "", times: run.times, values: run.volatility },
              ...runLook(run, isOne),
            })),
          },
        ],
        readings,
      ),
  });
}
