import { scale } from "vega";
import { numberText } from "./number-text.ts";
import { textWidth } from "./text-width.ts";

/** An axis of numbers: its ends, its ticks and their labels; no two labels are the same. */
export interface ValueAxis {
  readonly domain: readonly [number, number];
  readonly type: "linear" | "log";
  readonly values: readonly number[];
  readonly labels: readonly string[];
  /** The same labels as an expression of vega. */
  readonly labelExpr: string;
  /** Of the widest label, px. */
  readonly labelWidth: number;
}

export interface ValueAxisOptions {
  /** About how many ticks. */
  readonly ticks: number;
  readonly fontSize: number;
  /** `percent`: values are ratios. */
  readonly unit?: "number" | "percent";
  /** Whether the axis ends on ticks; true unless set. */
  readonly isNice?: boolean;
  /** Whether only whole numbers are ticks, for counts. */
  readonly isWhole?: boolean;
}

/** An axis of the finite values among these; if all are equal, with some room around. */
export function valueAxis(values: Iterable<number>, options: ValueAxisOptions): ValueAxis {
  const [low, high] = roomyExtent(values);
  const { ticks, isNice = true, isWhole = false } = options;
  const linear = scale("linear")().domain([low, high]);
  if (isNice) linear.nice(ticks);
  const domain: [number, number] = linear.domain();
  const all: number[] = linear.ticks(ticks);
  const wanted = isWhole ? all.filter(Number.isInteger) : all;
  return axisOf(domain, "linear", wanted, options);
}

/** An axis of powers of ten, for values above zero, with ticks between them if there are few. */
export function logAxis(values: Iterable<number>, options: ValueAxisOptions): ValueAxis {
  let [low, high] = extentOf(values);
  if (low === high) [low, high] = [low / 2, high * 2];
  const powers = Math.log10(high / low);
  const steps = powers > options.ticks * 0.7 ? [1] : powers > options.ticks * 0.4 ? [1, 3] : [1, 2, 5];
  const apart = Math.max(1, Math.round(powers / options.ticks));
  // within one power there are few round numbers but those of a linear axis
  const wanted: number[] = powers < 0.8 ? scale("linear")().domain([low, high]).ticks(options.ticks) : [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    if (power % apart !== 0 || powers < 0.8) continue;
    for (const step of steps) {
      const tick = Number(`${step}e${power}`);
      if (tick >= low && tick <= high) wanted.push(tick);
    }
  }
  return axisOf(
    [low, high],
    "log",
    wanted.length > 0 ? wanted : [low],
    options,
    powers < 0.8 ? "linear" : "log",
  );
}

/**
 * The same axis below a plot, without the ticks whose labels would overlap: every second, fourth, fifth or tenth is
 * left, counted from zero, so that the steps stay round.
 * @param width of the plot, px
 */
export function spacedAxis(axis: ValueAxis, width: number, fontSize: number): ValueAxis {
  const places = axis.values.map((value) => placeOf(value, axis) * width);
  const needed = axis.labelWidth + fontSize;
  const zero = Math.max(0, axis.values.indexOf(0));
  for (const every of [1, 2, 4, 5, 10]) {
    const kept = [...axis.values.keys()].filter((index) => (index - zero) % every === 0);
    const areApart = kept.every((index, at) => at === 0 || places[index]! - places[kept[at - 1]!]! >= needed);
    if (areApart) return ticksOf(axis, kept);
  }
  return ticksOf(axis, axis.values.length > 0 ? [zero] : []);
}

function ticksOf(axis: ValueAxis, kept: readonly number[]): ValueAxis {
  return {
    ...axis,
    values: kept.map((index) => axis.values[index]!),
    labels: kept.map((index) => axis.labels[index]!),
  };
}

/** From 0 at the beginning of an axis to 1 at its end. */
function placeOf(value: number, { domain: [low, high], type }: ValueAxis): number {
  return type === "log" ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
}

/** The smallest and the largest finite value; zero if there is none. */
export function extentOf(values: Iterable<number>): [number, number] {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > high ? [0, 0] : [low, high];
}

function roomyExtent(values: Iterable<number>): [number, number] {
  const [low, high] = extentOf(values);
  const size = Math.max(Math.abs(low), Math.abs(high));
  // zeros lie on the end of an axis: none of them may be below
  if (size < 1e-290) return [0, 1];
  // a range that doubles can hardly tell apart has no ticks in it
  if (high - low > size * 1e-12) return [low, high];
  return [low - size * 0.01, high + size * 0.01];
}

function axisOf(
  domain: readonly [number, number],
  type: ValueAxis["type"],
  values: readonly number[],
  { unit = "number", fontSize }: ValueAxisOptions,
  labelled: ValueAxis["type"] = type,
): ValueAxis {
  const { text, labelExpr } = labelling(values, labelled, unit === "percent");
  const labels = values.map(text);
  return {
    domain,
    type,
    values,
    labels,
    labelExpr,
    labelWidth: Math.max(0, ...labels.map((label) => textWidth(label, fontSize))),
  };
}

const prefixes = [
  [1e18, "E"],
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
  [1e-3, "m"],
  [1e-6, "µ"],
  [1e-9, "n"],
  [1e-12, "p"],
] as const;

/** The fewest digits that tell neighbouring ticks apart, all with one SI prefix if they would be long without. */
function labelling(values: readonly number[], type: ValueAxis["type"], isPercent: boolean) {
  const factor = isPercent ? 100 : 1;
  const sign = isPercent ? "%" : "";
  const size = Math.max(0, ...values.map(Math.abs)) * factor;
  if (type === "log") {
    // each with its own prefix or exponent
    const specifier = size < 1e21 && Math.min(...values) * factor >= 1e-12 ? "~s" : ".2~e";
    return labels(`format(datum.value * ${factor}, '${specifier}') + '${sign}'`, (value) => {
      return `${numberText(value * factor, specifier)}${sign}`;
    });
  }
  const step = smallestStep(values) * factor;
  const [unit, prefix] = prefixOf(size, step);
  if (size >= 1e21 || (size > 0 && size < 1e-12)) {
    const digits = Math.min(12, Math.max(0, powerOf(size) - powerOf(step)));
    return labels(
      `(datum.value ? replace(format(datum.value * ${factor}, '.${digits}e'), /e-/, 'e−') : '0') + '${sign}'`,
      (value) => `${value === 0 ? "0" : numberText(value * factor, `.${digits}e`)}${sign}`,
    );
  }
  const decimals = Math.min(12, Math.max(0, -powerOf(step / unit)));
  const specifier = `,.${decimals}f`;
  const scaled = factor / unit;
  return labels(
    `(datum.value ? format(datum.value * ${scaled}, '${specifier}') + '${prefix}' : '0') + '${sign}'`,
    (value) => `${value === 0 ? "0" : numberText(value * scaled, specifier) + prefix}${sign}`,
  );
}

function labels(labelExpr: string, text: (value: number) => string) {
  return { labelExpr, text };
}

function prefixOf(size: number, step: number): readonly [number, string] {
  if (size === 0 || (size >= 1e-3 && size < 1e4)) return [1, ""];
  const found = prefixes.find(([unit]) => size >= unit) ?? prefixes.at(-1)!;
  // six digits and a prefix are no shorter than the number itself
  return size >= 1 && step / found[0] < 1e-5 ? [1, ""] : found;
}

/** The power of ten of its first digit, even after rounding errors of sums of tenths. */
function powerOf(value: number): number {
  return Math.floor(Math.log10(value) + 1e-9);
}

function smallestStep(values: readonly number[]): number {
  let step = Number.POSITIVE_INFINITY;
  for (let index = 1; index < values.length; index++) {
    step = Math.min(step, Math.abs(values[index]! - values[index - 1]!));
  }
  return Number.isFinite(step) && step > 0 ? step : Math.abs(values[0] ?? 1) || 1;
}
