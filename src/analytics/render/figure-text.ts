import { grouped, shortDecimal } from "../../model/text/number-text.ts";
import type { Figure } from "../figure.ts";

/** Figures that people read as percentages. */
const percentages =
  /^(?:total_return|return|cagr.*|volatility.*|downside_deviation|var|var_normal|cvar|max_drawdown|depth|time_under_water|ulcer_index|best_.*|worst_.*|alpha|hit_rate|time_in_market|psr|maker_share|taker_share|share|fill_ratio_.*|coverage|mean_return|spread)$/;

/** Labels that are not just the name with spaces. */
const labels: Readonly<Record<string, string>> = {
  cagr: "CAGR",
  cagr_clock: "CAGR by the clock",
  skewness_population: "Skewness, population",
  kurtosis_population: "Kurtosis, population",
  var: "VaR 5 %, historical",
  var_normal: "VaR 5 %, normal",
  cvar: "CVaR 5 %",
  psr: "Probabilistic Sharpe",
  information_ratio_annualised: "Information ratio, yearly",
  net_pnl: "Net P&L, open included",
  closed_net_pnl: "Net P&L, closed",
  capture_up: "Capture, up",
  capture_down: "Capture, down",
  fill_ratio_orders: "Fill ratio, orders",
  fill_ratio_quantity: "Fill ratio, quantity",
  fill_ratio_mean: "Fill ratio, mean",
  p50: "Median",
  p05: "5 %",
  p95: "95 %",
  p99: "99 %",
  max: "Longest",
  accept_latency_mean: "To accept, mean",
  accept_latency_p95: "To accept, 95 %",
  accept_latency_max: "To accept, longest",
  fill_latency_mean: "To first fill, mean",
  fill_latency_p95: "To first fill, 95 %",
  fill_latency_max: "To first fill, longest",
  accept_latency_p50: "To accept, median",
  accept_latency_p99: "To accept, 99 %",
  fill_latency_p50: "To first fill, median",
  fill_latency_p99: "To first fill, 99 %",
  nan_values: "Not a number",
  infinite_values: "Infinite",
  ic: "IC",
  ic_deviation: "Deviation",
  ic_ratio: "Mean / deviation",
  ic_t: "t",
  ic_positive: "Above zero",
};

/** A figure's name in words. */
export function figureLabel(name: string): string {
  const words = name.replaceAll("_", " ");
  return labels[name] ?? `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`;
}

export const noValue = "n/a";

/** A figure as people read it: percentages, durations, money with its digits in groups. */
export function figureText(name: string, figure: Figure): string {
  if (figure.value === null) return noValue;
  const { value, unit } = figure;
  if (typeof value === "string") return moneyText(value);
  if (/^s\b/.test(unit)) return spanText(value);
  if (percentages.test(name)) return percentText(value * 100);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return wholeText(value);
  if (unit === "ratio" || unit.startsWith("ratio,") || unit === "number") return fixed(value, 3);
  return fixed(value, 2);
}

/** Two decimals; a value that would round to zero is shown as less than the smallest. */
function percentText(percent: number): string {
  const isTiny = percent !== 0 && Math.abs(percent) < 0.005;
  return isTiny ? `${percent < 0 ? ">-" : "<"}0.01 %` : `${fixed(percent, 2)} %`;
}

/** This many decimals, or more if they would all be zeros. */
function fixed(value: number, decimals: number): string {
  const text = value.toFixed(decimals);
  if (Math.abs(value) >= 1e12) return value.toExponential(3);
  if (Number(text) === 0) return value === 0 ? text.replace("-", "") : value.toPrecision(2);
  const [whole = "", rest] = text.split(".");
  return `${groupedDigits(whole)}.${rest}`;
}

function wholeText(value: number): string {
  return groupedDigits(String(value));
}

/** Exact money cut to two decimals for reading; below a cent with at most twelve digits. */
function moneyText(text: string): string {
  const value = Number(text);
  const [whole = "0", rest = ""] = text.split(".");
  if (Math.abs(value) < 0.01) return shortDecimal(text);
  if (whole.replace("-", "").length > 15)
    return rest === "" ? groupedDigits(whole) : `${groupedDigits(whole)}.${rest.slice(0, 2)}`;
  return fixed(value, 2);
}

function groupedDigits(digits: string): string {
  return digits.startsWith("-") ? `-${grouped(BigInt(digits.slice(1)))}` : grouped(BigInt(digits));
}

/** A duration in its two largest units; below a second in milliseconds, below a hundredth of one in nanoseconds. */
export function spanText(seconds: number): string {
  const units = [
    [86_400, "d"],
    [3_600, "h"],
    [60, "min"],
  ] as const;
  const at = units.findIndex(([length]) => seconds >= length);
  if (at < 0 && seconds > 0 && seconds < 1e-5) return `${Number((seconds * 1e9).toPrecision(3))} ns`;
  if (at < 0 && seconds > 0 && seconds < 1) return `${Number((seconds * 1_000).toPrecision(3))} ms`;
  if (at < 0) return `${Number(seconds.toPrecision(3))} s`;
  const [length, name] = units[at]!;
  const [below, belowName] = units[at + 1] ?? ([1, "s"] as const);
  const parts = Math.round(seconds / below);
  const [whole, rest] = [Math.floor(parts / (length / below)), parts % (length / below)];
  return rest === 0 ? `${whole} ${name}` : `${whole} ${name} ${rest} ${belowName}`;
}
