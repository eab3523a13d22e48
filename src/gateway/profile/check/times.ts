import { type TimeUnit, timeUnits } from "../../../model/profile/row-map.ts";
import { type Nanoseconds, parseTime } from "../../../model/time.ts";
import { instantIn } from "../../rest/field-values.ts";

const earliest = parseTime("1990-01-01");
const latest = parseTime("2100-01-01");

/** Whether an instant is plausible for a trading run. */
export function isLikelyTime(ns: Nanoseconds): boolean {
  return ns >= earliest && ns < latest;
}

/** The unit in which a value is a time between 1990 and 2100: at most one, as they differ by 1000. */
export function likelyUnit(text: string): TimeUnit | undefined {
  return timeUnits.find((unit) => {
    const ns = instantIn(text, unit);
    return ns !== undefined && isLikelyTime(ns);
  });
}

/** How many digits a number has before its decimal point. */
export function digitsAhead(text: string): number {
  return (/^-?(\d+)/.exec(text)?.[1] ?? "").length;
}
