import { parseJson } from "../../model/outside-json.ts";
import type { TimeUnit } from "../../model/profile/row-map.ts";
import { floorDivide, type Nanoseconds, parseTime } from "../../model/time.ts";
import { nsOfUnit } from "./written-bounds.ts";

/** The text of a JSON string or number, the number as written; undefined for anything else. The JSON must be valid. */
export function scalarOf(json: string): string | undefined {
  if (json.startsWith('"')) {
    try {
      return parseJson(json) as string;
    } catch {
      return undefined;
    }
  }
  return /^-?\d/.test(json) ? json : undefined;
}

/** Whether a JSON value is true, as a boolean or word; undefined if it is neither true nor false. */
export function truthOf(json: string): boolean | undefined {
  const text = (scalarOf(json) ?? json).toLowerCase();
  if (text === "true" || text === "1") return true;
  return text === "false" || text === "0" || text === "null" || text === "" ? false : undefined;
}

const decimal = /^(-?)(\d{1,40})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,3}))?$/;

/** An instant in a unit, rounded down to the nanosecond; undefined if the text is not one. */
export function instantIn(text: string, unit: TimeUnit): Nanoseconds | undefined {
  if (unit === "rfc3339") {
    // a plain number is not RFC 3339, although the parser would read it as nanoseconds
    if (/^-?\d+$/.test(text)) return undefined;
    try {
      return parseTime(text);
    } catch {
      return undefined;
    }
  }
  const match = decimal.exec(text);
  if (match === null) return undefined;
  const [, sign, whole = "", fraction = "", exponent = "0"] = match;
  const digits = BigInt(whole + fraction) * nsOfUnit[unit] * (sign === "-" ? -1n : 1n);
  const shift = Number(exponent) - fraction.length;
  return shift >= 0 ? digits * 10n ** BigInt(shift) : floorDivide(digits, 10n ** BigInt(-shift));
}

/** A count of rows; undefined if the text is not one. */
export function countOf(text: string): bigint | undefined {
  const count = instantIn(text, "ns");
  return count === undefined || count < 0n ? undefined : count;
}
