import type { Chart, NoChart } from "./chart.ts";
import type { EventsData, OfRun, RunEvent } from "./chart-data.ts";
import { type Drawing, drawChart, plotWidth } from "./drawing/draw-chart.ts";
import { pixels, timeEncoding } from "./drawing/encodings.ts";
import type { Colour, Frame } from "./drawing/frame.ts";
import type { Layer } from "./drawing/layer.ts";
import { legend } from "./drawing/legend.ts";
import { countOf, timeText } from "./drawing/number-text.ts";
import { firstRows } from "./drawing/readings.ts";
import { noDataSentence, runEntries, runLook, runPrefix } from "./drawing/run-look.ts";
import { textWidth, textWithin } from "./drawing/text-width.ts";
import { timeAxis } from "./drawing/time-axis.ts";
import { extentOf } from "./drawing/value-axis.ts";

type Run = OfRun & { readonly events: readonly RunEvent[] };

const id = "events";
const title = "Events";
/**
 * Most kinds with their own row; the rest share the last. Fewer for several runs, because each row has a lane per run.
 */
const mostKinds = { ofOne: 15, ofSeveral: 8 };
/** Most marks of one drawing. */
const mostMarks = 2600;

const severities = ["INFO", "WARNING", "ERROR"] as const;
type Severity = (typeof severities)[number];

/** The look of each mark: different in shape as well as colour. */
const looks: Record<Severity, { shape: "circle" | "diamond" | "triangle-up"; colour: Colour; size: number }> =
  {
    INFO: { shape: "circle", colour: "muted", size: 34 },
    WARNING: { shape: "diamond", colour: "accent", size: 58 },
    ERROR: { shape: "triangle-up", colour: "loss", size: 64 },
  };

/** Events over time, one row per kind; each of several runs has a lane in every row. */
export async function eventsChart(data: EventsData): Promise<Chart | NoChart> {
  const isOne = data.runs.length === 1;
  const runs = data.runs
    .map(({ events, ...run }) => ({
      ...run,
      events: events.filter(({ time }) => Number.isFinite(time)).toSorted((a, b) => a.time - b.time),
    }))
    .filter(({ events }) => events.length > 0);
  if (runs.length === 0) return { id, title, reason: "no events" };
  const all = runs.flatMap((run) => run.events.map((event) => ({ run, event })));
  const rows = kindRows(runs, isOne);
  const [from, to] = extentOf(all.map(({ event }) => event.time));
  const counted = rows.map(({ label, events }) => {
    return `${label}: ${runs.map((run, index) => `${runPrefix(run, isOne)}${events[index]!.length}`).join(", ")}`;
  });
  return await drawChart({
    id,
    title,
    caption: [
      `${countOf(all.length, "event")}; events of one kind within a few pixels are one mark, with the highest severity.`,
      noDataSentence(data.runs, runs),
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Events over time, ${timeText(from)} to ${timeText(to)} UTC. ${counted.join("; ")}.`,
    numbers: {
      columns: ["Time (UTC)", ...(isOne ? [] : ["Run"]), "Kind", "Severity", "Message"],
      ...firstRows(
        all
          .toSorted((a, b) => a.event.time - b.event.time)
          .map(({ run, event: { time, kind, severity, message } }) => [
            timeText(time),
            ...(isOne ? [] : [run.label]),
            ...[kind, severity, message],
          ]),
        "events",
      ),
    },
    draw: (frame) => draw(frame, { runs, rows, isOne, from, to }),
  });
}

interface KindRow {
  readonly label: string;
  /** Of each run, in the order of time. */
  readonly events: readonly (readonly RunEvent[])[];
}

function kindRows(runs: readonly Run[], isOne: boolean): readonly KindRow[] {
  const most = isOne ? mostKinds.ofOne : mostKinds.ofSeveral;
  const kinds = [...new Set(runs.flatMap(({ events }) => events.map(({ kind }) => kind)))];
  const byKind = runs.map(({ events }) => Map.groupBy(events, ({ kind }) => kind));
  const rows = kinds.map((label) => ({ label, events: byKind.map((own) => own.get(label) ?? []) }));
  if (rows.length <= most) return rows;
  const count = ({ events }: KindRow) => events.reduce((sum, { length }) => sum + length, 0);
  const frequent = rows.toSorted((a, b) => count(b) - count(a)).slice(0, most - 1);
  const rest = rows.filter((row) => !frequent.includes(row));
  return [
    ...rows.filter((row) => frequent.includes(row)),
    {
      label: `${rest.length} other kinds`,
      events: runs.map((_, index) =>
        rest.flatMap(({ events }) => events[index]!).sort((a, b) => a.time - b.time),
      ),
    },
  ];
}

interface Drawn {
  readonly runs: readonly Run[];
  readonly rows: readonly KindRow[];
  readonly isOne: boolean;
  readonly from: number;
  readonly to: number;
}

function draw(frame: Frame, { runs, rows, isOne, from, to }: Drawn): Drawing {
  const { fontSize, isNarrow, paint } = frame;
  const laneHeight = isOne ? (isNarrow ? 24 : 26) : 11;
  const rowHeight = isOne ? laneHeight : Math.max(fontSize + 8, laneHeight * runs.length + 8);
  const labelRoom = isNarrow ? 110 : 220;
  const labels = rows.map(({ label }) => textWithin(label, fontSize, labelRoom));
  const left = Math.max(40, ...labels.map((label) => textWidth(label, fontSize))) + 14;
  const right = isNarrow ? 14 : 20;
  const width = plotWidth(frame, { left, right });
  const time = timeAxis(from, to, { width, fontSize, overhang: [10, right] });
  const [start, end] = time.domain;
  const cellPx = Math.max(5, (width * rows.length * runs.length) / mostMarks);
  const laneAt = (row: number, lane: number) =>
    (row + 0.5) * rowHeight + (lane - (runs.length - 1) / 2) * laneHeight;
  const marks = rows.flatMap(({ events }, row) =>
    events.flatMap((own, lane) =>
      together(own, start, ((end - start) / width) * cellPx).map((near) => {
        const mark = markOf(near);
        return {
          ...mark,
          text: `${runPrefix(runs[lane]!, isOne)}${mark.text}`,
          lane,
          middle: laneAt(row, lane),
        };
      }),
    ),
  );
  const found = severities.filter((severity) => marks.some((mark) => mark.severity === severity));
  const names = legend(
    [
      ...runEntries(runs, isOne, frame),
      ...found.map((severity) => ({
        label: severity.charAt(0) + severity.slice(1).toLowerCase(),
        shape: looks[severity].shape,
        colour: isOne ? looks[severity].colour : ("ink" as const),
      })),
    ],
    frame,
    width,
  );
  const x = timeEncoding(time, "t", frame);
  return {
    left,
    right,
    bottom: time.height,
    panels: [
      {
        height: rows.length * rowHeight,
        above: names.height,
        layers: [
          {
            // through the lane of the only run, otherwise between the rows
            data: { values: rows.map((_, row) => ({ middle: (row + (isOne ? 0.5 : 1)) * rowHeight })) },
            mark: { type: "rule", stroke: paint("line"), strokeWidth: 1 },
            encoding: { y: pixels("middle") },
          },
          {
            data: { values: labels.map((text, row) => ({ text, middle: (row + 0.5) * rowHeight })) },
            mark: { type: "text", align: "right", baseline: "middle", fill: paint("ink") },
            encoding: { x: { value: -12 }, y: pixels("middle"), text: { field: "text", type: "nominal" } },
          },
          ...found.flatMap((severity) =>
            runs.map(
              (run, lane): Layer => ({
                data: { values: marks.filter((mark) => mark.severity === severity && mark.lane === lane) },
                mark: {
                  type: "point",
                  aria: true,
                  filled: true,
                  shape: looks[severity].shape,
                  fill: paint(isOne ? looks[severity].colour : runLook(run, isOne).colour),
                  size: looks[severity].size,
                  opacity: 1,
                },
                encoding: { x, y: pixels("middle"), description: { field: "text", type: "nominal" } },
              }),
            ),
          ),
          ...names.layers,
        ],
      },
    ],
  };
}

/** Groups events within a cell of time, which is as wide as a mark. */
function together(events: readonly RunEvent[], start: number, cellMs: number): RunEvent[][] {
  return [...Map.groupBy(events, ({ time }) => Math.floor((time - start) / cellMs)).values()];
}

function markOf(events: readonly RunEvent[]): { t: number; severity: Severity; text: string } {
  const gravest = events.reduce((worst, event) => (rank(event) > rank(worst) ? event : worst), events[0]!);
  const more = events.length > 1 ? `\nand ${countOf(events.length - 1, "more event")}` : "";
  const { time, kind, severity, message } = gravest;
  return {
    t: time,
    severity: severities[rank(gravest)]!,
    text: `${timeText(time)} ${severity} ${kind}: ${message.slice(0, 120)}${more}`,
  };
}

function rank({ severity }: RunEvent): number {
  const upper = severity.toUpperCase();
  if (upper.startsWith("ERR") || upper === "CRITICAL" || upper === "FATAL") return 2;
  return upper.startsWith("WARN") ? 1 : 0;
}
