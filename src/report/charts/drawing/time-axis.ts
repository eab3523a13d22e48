import { timeTextBy } from "./number-text.ts";
import { textWidth } from "./text-width.ts";

/** An axis of time: its ends, its ticks and their labels, in UTC. No two labels are the same. */
export interface TimeAxis {
  /** UNIX milliseconds. */
  readonly domain: readonly [number, number];
  readonly values: readonly number[];
  /** One line or two. */
  readonly labels: readonly (readonly string[])[];
  /** Room that they need below the plot, px. */
  readonly height: number;
  /** The same labels as an expression of vega. */
  readonly labelExpr: string;
}

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** Ticks at a fixed step, and their labels: one for each tick, and one below that is shown only where it changes. */
interface Step {
  readonly approximateMs: number;
  ticks(from: number, to: number): number[];
  readonly format: string;
  readonly beneath: string | null;
}

const clock = (ms: number, format: string): Step => ({
  approximateMs: ms,
  ticks: (from, to) => evenTicks(from, to, ms, 0),
  format,
  beneath: "%-d %b %Y",
});

/** For hours over several days, because hours alone would repeat. */
const dayClock = (ms: number): Step => ({ ...clock(ms, "%-d %b %H:%M"), beneath: "%Y" });

const days = (count: number): Step => ({
  approximateMs: count * day,
  // weeks begin on Monday; 1 January 1970 was a Thursday
  ticks: (from, to) => evenTicks(from, to, count * day, count % 7 === 0 ? 4 * day : 0),
  format: "%-d %b",
  beneath: "%Y",
});

const months = (count: number): Step => ({
  approximateMs: count * 30.4 * day,
  ticks: (from, to) => {
    const ticks: number[] = [];
    const start = new Date(from);
    let month = start.getUTCFullYear() * 12 + Math.ceil(start.getUTCMonth() / count) * count;
    for (; ; month += count) {
      const tick = Date.UTC(Math.floor(month / 12), month % 12);
      // NaN beyond the range of dates
      if (!(tick <= to)) return ticks;
      if (tick >= from) ticks.push(tick);
    }
  },
  format: count % 12 === 0 ? "%Y" : "%b %Y",
  beneath: null,
});

const withinDay: readonly Step[] = [
  ...[1, 10, 100].map((ms) => clock(ms, "%H:%M:%S.%L")),
  ...[1, 5, 15, 30].map((count) => clock(count * second, "%H:%M:%S")),
  ...[1, 5, 15, 30].map((count) => clock(count * minute, "%H:%M")),
  ...[1, 2, 3, 6].map((count) => clock(count * hour, "%H:%M")),
];
const beyondDay: readonly Step[] = [
  ...[1, 2, 3, 6, 12].map((count) => dayClock(count * hour)),
  ...[1, 2, 7, 14].map(days),
  ...[1, 2, 3, 6].map(months),
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000].map((count) => months(count * 12)),
];

/**
 * An axis from one instant to another; if they are equal, with some room around.
 * @param width of the axis, px
 * @param overhang how far a label may reach beyond either end, px
 */
export function timeAxis(
  from: number,
  to: number,
  { width, fontSize, overhang }: { width: number; fontSize: number; overhang: readonly [number, number] },
): TimeAxis {
  const room = to > from ? 0 : 30 * minute;
  const domain: [number, number] = [from - room, to + room];
  const [start, end] = domain;
  const pixelsPerMs = width / (end - start);
  const steps = end - start <= day ? withinDay : beyondDay;
  const step =
    steps.find((each) => each.approximateMs * pixelsPerMs >= widest(each, start, fontSize) + 24) ??
    steps.at(-1)!;

  const values: number[] = [];
  const labels: string[][] = [];
  let above = "";
  for (const tick of step.ticks(start, end)) {
    const lines = [timeTextBy(tick, step.format)];
    const beneath = step.beneath === null ? "" : timeTextBy(tick, step.beneath);
    if (beneath !== above) lines.push(beneath);
    const half = Math.max(...lines.map((line) => textWidth(line, fontSize))) / 2;
    const x = (tick - start) * pixelsPerMs;
    if (x - half < -overhang[0] || x + half > width + overhang[1]) continue;
    above = beneath;
    values.push(tick);
    labels.push(lines);
  }
  const lines = Math.max(1, ...labels.map(({ length }) => length));
  return {
    domain,
    values,
    labels,
    height: 12 + lines * (fontSize + 3),
    labelExpr: labelExpression(step, values, labels),
  };
}

function labelExpression(
  step: Step,
  values: readonly number[],
  labels: readonly (readonly string[])[],
): string {
  const line = `utcFormat(datum.value, '${step.format}')`;
  const twoLines = values.filter((_, index) => labels[index]!.length === 2);
  if (twoLines.length === 0) return line;
  return `indexof([${twoLines.join(",")}], datum.value) < 0 ? ${line} : [${line}, utcFormat(datum.value, '${step.beneath}')]`;
}

function widest({ format, beneath }: Step, time: number, fontSize: number): number {
  // no month's short name is wider than September's
  const sample = Date.UTC(new Date(time).getUTCFullYear(), 8, 28, 20, 20, 20, 200);
  return Math.max(
    ...[format, beneath].map((line) => (line === null ? 0 : textWidth(timeTextBy(sample, line), fontSize))),
  );
}

function evenTicks(from: number, to: number, ms: number, offset: number): number[] {
  const ticks: number[] = [];
  for (let tick = Math.ceil((from - offset) / ms) * ms + offset; tick <= to; tick += ms) ticks.push(tick);
  return ticks;
}
