import type { Chart, NoChart } from "./chart.ts";
import type { ExposureData } from "./chart-data.ts";
import { drawChart } from "./drawing/draw-chart.ts";
import type { Frame } from "./drawing/frame.ts";
import { type LinePanel, linePanels } from "./drawing/line-panels.ts";
import { amountText, orDash, percentText, timeText } from "./drawing/number-text.ts";
import { indexAt, readingTimes, rowsNote } from "./drawing/readings.ts";
import { noDataSentence, runEntries, runLook, runPrefix } from "./drawing/run-look.ts";

const id = "exposure";
const title = "Exposure";

/** Exposure over time, gross and net: for one run on the same axes, for several on separate ones. */
export async function exposureChart(data: ExposureData): Promise<Chart | NoChart> {
  const runs = data.runs.filter(({ gross, net }) => gross.some(Number.isFinite) || net.some(Number.isFinite));
  if (runs.length === 0) return { id, title, reason: "no positions" };
  const isOne = data.runs.length === 1;
  const isRatio = data.unit === "ratio";
  const unit = isRatio ? "percent" : "number";
  const text = isRatio ? percentText : amountText;
  const what = isRatio ? "as a share of equity" : `in ${data.unit}`;
  const readings = readingTimes(runs).map((time) => {
    const cells: string[] = [];
    const parts = runs.map((run) => {
      const { times, gross, net } = run;
      const index = indexAt(times, time);
      const [all, rest] = [orDash(gross[index] ?? null, text), orDash(net[index] ?? null, text)];
      cells.push(all, rest);
      return `${runPrefix(run, isOne)}gross ${all}, net ${rest}`;
    });
    return { time, cells, text: [timeText(time), ...parts].join("\n") };
  });
  const lines = (of: "gross" | "net") =>
    runs.map((run) => ({
      ...{ name: "", times: run.times, values: run[of], isStep: true },
      ...runLook(run, isOne),
    }));
  const panels = (frame: Frame): LinePanel[] => {
    if (!isOne) {
      return [
        {
          heading: "Gross",
          unit,
          hasZero: true,
          names: runEntries(runs, isOne, frame, "line"),
          lines: lines("gross"),
        },
        { heading: "Net", unit, hasZero: true, lines: lines("net") },
      ];
    }
    const [{ times, gross, net }] = runs as [(typeof runs)[0]];
    const line = { times, dash: [], isStep: true };
    return [
      {
        heading: isRatio ? "Share of equity" : data.unit,
        unit,
        hasZero: true,
        names: "lines",
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
      `Value of the positions ${what}: gross is long plus short, net is long minus short.`,
      noDataSentence(data.runs, runs),
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Lines of gross and net exposure ${what}: ${runs.map(({ name }) => name).join(", ")}.`,
    numbers: {
      columns: [
        "Time (UTC)",
        ...runs.flatMap((run) => {
          const prefix = runPrefix(run, isOne);
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
    draw: (frame) => linePanels(frame, panels(frame), readings),
  });
}
