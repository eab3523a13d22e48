import { durationText } from "./duration-text.ts";

/** An integer with its digits in groups of three. */
export function grouped(count: number | bigint): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A decimal for reading: rounded to twelve digits if it has more than twelve decimals. Other texts stay as they are. */
export function shortDecimal(text: string): string {
  if (!/^-?\d+\.\d{13,}$/.test(text)) return text;
  const [whole = ""] = text.split(".");
  return whole.length > 12 ? whole : String(Number(Number(text).toPrecision(12)));
}

/** How long something took; a few seconds with tenths. */
export function tookText(ms: number): string {
  return ms < 9_950 ? `${Math.max(0.1, ms / 1000).toFixed(1)} s` : durationText(ms);
}
