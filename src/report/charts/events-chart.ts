import type { Chart, NoChart } from "./chart.ts";
import type { EventsData } from "./chart-data.ts";
import { type Drawing, drawChart, plotWidth } from "./drawing/draw-chart.ts";
import { pixels, timeEncoding } from "./drawing/encodings.ts";
import type { Colour, Frame } from "./drawing/frame.ts";
import type { Layer } from "./drawing/layer.ts";
import { legend } from "./drawing/legend.ts";
import { countOf, timeText } from "./drawing/number-text.ts";
import { firstRows } from "./drawing/readings.ts";
import { textWidth, textWithin } from "./drawing/text-width.ts";
import { timeAxis } from "./drawing/time-axis.ts";

type Event = EventsData["events"][number];

const id = "events";
const title = "Events";
/** So many kinds have a row of their own; the rest share the last. */
const mostKinds = 15;

const severities = ["INFO", "WARNING", "ERROR"] as const;
type Severity = (typeof severities)[number];

/** How a mark of each looks: told apart by shape as by colour. */
const looks: Record<Severity, { shape: "circle" | "diamond" | "triangle-up"; colour: Colour; size: number }> =
  {
    INFO: { shape: "circle", colour: "muted", size: 34 },
    WARNING: { shape: "diamond", colour: "accent", size: 58 },
    ERROR: { shape: "triangle-up", colour: "loss", size: 64 },
  };

/** Events over time, a row a kind. */
export async function eventsChart(data: EventsData): Promise<Chart | NoChart> {
  const events = data.events.filter(({ time }) => Number.isFinite(time)).toSorted((a, b) => a.time - b.time);
  if (events.length === 0) return { id, title, reason: "no events" };
  const rows = kindRows(events);
  const counted = rows.map(({ label, events: own }) => `${label}: ${own.length}`);
  return await drawChart({
    id,
    title,
    caption: [
      `${countOf(events.length, "event")}; those of a kind that lie within a few pixels are one mark, as grave as the gravest.`,
      data.note ?? "",
    ]
      .filter(Boolean)
      .join(" "),
    label: `Events over time, ${timeText(events[0]!.time)} to ${timeText(events.at(-1)!.time)} UTC. ${counted.join("; ")}.`,
    numbers: {
      columns: ["Time (UTC)", "Kind", "Severity", "Message"],
      ...firstRows(
        events.map(({ time, kind, severity, message }) => [timeText(time), kind, severity, message]),
        "events",
      ),
    },
    draw: (frame) => draw(frame, events, rows),
  });
}

interface KindRow {
  readonly label: string;
  readonly events: readonly Event[];
}

function kindRows(events: readonly Event[]): KindRow[] {
  const kinds = [...Map.groupBy(events, ({ kind }) => kind)].map(([label, own]) => ({ label, events: own }));
  if (kinds.length <= mostKinds) return kinds;
  const frequent = kinds.toSorted((a, b) => b.events.length - a.events.length).slice(0, mostKinds - 1);
  const rest = kinds.filter((kind) => !frequent.includes(kind));
  return [
    ...kinds.filter((kind) => frequent.includes(kind)),
    {
      label: `${rest.length} other kinds`,
      events: rest.flatMap((kind) => kind.events).sort((a, b) => a.time - b.time),
    },
  ];
}

function draw(frame: Frame, events: readonly Event[], rows: readonly KindRow[]): Drawing {
  const { fontSize, isNarrow, paint } = frame;
  const rowHeight = isNarrow ? 24 : 26;
  const labelRoom = isNarrow ? 110 : 220;
  const labels = rows.map(({ label }) => textWithin(label, fontSize, labelRoom));
  const left = Math.max(40, ...labels.map((label) => textWidth(label, fontSize))) + 14;
  const right = isNarrow ? 14 : 20;
  const width = plotWidth(frame, { left, right });
  const time = timeAxis(events[0]!.time, events.at(-1)!.time, { width, fontSize, overhang: [10, right] });
  const [start, end] = time.domain;
  const marks = rows.flatMap((row, index) =>
    together(row.events, start, (end - start) / (width / 5)).map((own) => ({
      ...markOf(own),
      middle: (index + 0.5) * rowHeight,
    })),
  );
  const found = severities.filter((severity) => marks.some((mark) => mark.severity === severity));
  const names = legend(
    found.map((severity) => ({
      label: severity.charAt(0) + severity.slice(1).toLowerCase(),
      shape: looks[severity].shape,
      colour: looks[severity].colour,
    })),
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
            data: { values: rows.map((_, index) => ({ middle: (index + 0.5) * rowHeight })) },
            mark: { type: "rule", stroke: paint("line"), strokeWidth: 1 },
            encoding: { y: pixels("middle") },
          },
          {
            data: { values: labels.map((text, index) => ({ text, middle: (index + 0.5) * rowHeight })) },
            mark: { type: "text", align: "right", baseline: "middle", fill: paint("ink") },
            encoding: { x: { value: -12 }, y: pixels("middle"), text: { field: "text", type: "nominal" } },
          },
          ...found.map(
            (severity): Layer => ({
              data: { values: marks.filter((mark) => mark.severity === severity) },
              mark: {
                type: "point",
                aria: true,
                filled: true,
                shape: looks[severity].shape,
                fill: paint(looks[severity].colour),
                size: looks[severity].size,
                opacity: 1,
              },
              encoding: { x, y: pixels("middle"), description: { field: "text", type: "nominal" } },
            }),
          ),
          ...names.layers,
        ],
      },
    ],
  };
}

/** Events that lie within a cell of time, which is as wide as a mark. */
function together(events: readonly Event[], start: number, cellMs: number): Event[][] {
  return [...Map.groupBy(events, ({ time }) => Math.floor((time - start) / cellMs)).values()];
}

function markOf(events: readonly Event[]): { t: number; severity: Severity; text: string } {
  const gravest = events.reduce((worst, event) => (rank(event) > rank(worst) ? event : worst), events[0]!);
  const more = events.length > 1 ? `\nand ${countOf(events.length - 1, "more event")}` : "";
  const { time, kind, severity, message } = gravest;
  return {
    t: time,
    severity: severities[rank(gravest)]!,
    text: `${timeText(time)} ${severity} ${kind}: ${message.slice(0, 200)}${more}`,
  };
}

function rank({ severity }: Event): number {
  const upper = severity.toUpperCase();
  if (upper.startsWith("ERR") || upper === "CRITICAL" || upper === "FATAL") return 2;
  return upper.startsWith("WARN") ? 1 : 0;
}
