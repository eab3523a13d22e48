import * as vega from "vega";

/** Vega's own formats for numbers and times, always in English; its types leave the function out. */
const { format, utcFormat } = (vega as unknown as { defaultLocale(): Formatters }).defaultLocale();

interface Formatters {
  format(specifier: string): (value: number) => string;
  utcFormat(specifier: string): (time: Date) => string;
}

/** A number by a d3 format, with the minus sign of the field also in exponents. */
export function numberText(value: number, specifier: string): string {
  return format(specifier)(value).replace("e-", "e−").replace("e+", "e");
}

/** Money and the like, with two decimals, below one with four digits: `−1,234.50`, `0.0234`, `1.5e−9`. */
export function amountText(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-6)) return numberText(value, ".3~e");
  return numberText(value, size > 0 && size < 1 ? ".4~r" : ",.2f");
}

/** Prices and quantities with their decimals, at most nine. */
export function priceText(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-9)) return numberText(value, ".4~e");
  return numberText(value, ",.9~f");
}

/** A ratio in percent: `−3.21%`, below a tenth of one with two digits: `−0.0066%`. */
export function percentText(ratio: number): string {
  const size = Math.abs(ratio);
  if (size >= 1e9) return `${numberText(ratio * 100, ".3~e")}%`;
  if (size > 0 && size < 0.00005) return `${numberText(ratio * 100, ".3~g")}%`;
  if (size > 0 && size < 0.001) return `${numberText(ratio * 100, ".2r")}%`;
  return numberText(ratio, ",.2%");
}

/** A statistic, such as a Sharpe ratio, with three decimals. */
export function statisticText(value: number): string {
  const size = Math.abs(value);
  return size >= 1e6 || (size > 0 && size < 0.0005) ? numberText(value, ".3~e") : numberText(value, ",.3f");
}

export function countText(count: number): string {
  return numberText(count, ",d");
}

/** With its noun: `1 order`, `1,204 orders`. */
export function countOf(count: number, noun: string): string {
  return `${countText(count)} ${count === 1 ? noun : `${noun}s`}`;
}

/** A number, or an en dash if there is none. */
export function orDash(value: number | null, text: (value: number) => string): string {
  return value === null || !Number.isFinite(value) ? "–" : text(value === 0 ? 0 : value);
}

/** An instant in UTC, as precise as necessary: `12 Apr 2021`, `12 Apr 2021 06:00`, `12 Apr 2021 06:00:01`. */
export function timeText(time: number): string {
  const specifier = time % 86_400_000 === 0 ? "" : time % 60_000 === 0 ? " %H:%M" : " %H:%M:%S";
  return utcFormat(`%-d %b %Y${specifier}`)(new Date(time));
}

/** An instant in UTC by a d3 format. */
export function timeTextBy(time: number, specifier: string): string {
  return utcFormat(specifier)(new Date(time));
}

/** A length of time in its two largest units: `487 d 6 h`, `3 min 20 s`, `12 ms`; below a hundredth of a ms `234 ns`. */
export function durationText(ms: number): string {
  if (ms > 0 && ms < 0.01) return `${numberText(ms * 1e6, ".3~r")} ns`;
  if (ms < 1000) return `${numberText(ms, ms < 10 ? ".2~f" : ".0f")} ms`;
  const units = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1000],
  ] as const;
  const first = units.findIndex(([, unitMs]) => ms >= unitMs);
  const parts: string[] = [];
  let rest = ms;
  for (const [name, unitMs] of units.slice(first, first + 2)) {
    const count = Math.floor(rest / unitMs);
    rest -= count * unitMs;
    if (count > 0) parts.push(`${countText(count)} ${name}`);
  }
  return parts.join(" ");
}
