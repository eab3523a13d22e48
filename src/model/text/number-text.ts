import { durationText } from "./duration-text.ts";

/** An integer with its digits in groups of three. */
export function grouped(count: number | bigint): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** How long something took; a few seconds with tenths. */
export function tookText(ms: number): string {
  return ms < 9_950 ? `${Math.max(0.1, ms / 1000).toFixed(1)} s` : durationText(ms);
}
