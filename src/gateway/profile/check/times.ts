import { type TimeUnit, timeUnits } from "../../../model/profile/row-map.ts";
import { floorDivide, formatTime, type Nanoseconds, parseTime } from "../../../model/time.ts";

const digitsOf = { ns: 0, us: 3, ms: 6, s: 9 } as const;

/** Nanoseconds of one unit; bounds in RFC 3339 are exact to the nanosecond. */
export function unitNs(unit: TimeUnit): bigint {
  return unit === "rfc3339" ? 1n : 10n ** BigInt(digitsOf[unit]);
}

const decimal = /^(-?)(\d{1,30})(?:\.(\d{1,30}))?(?:[eE]([-+]?\d{1,3}))?$/;

/** The instant that a text or number means in a unit, fractions of a nanosecond left off; undefined where it means none. */
export function instantIn(text: string, unit: TimeUnit): Nanoseconds | undefined {
  if (unit === "rfc3339") {
    if (!/\d-\d/.test(text)) return undefined;
    try {
      return parseTime(text);
    } catch {
      return undefined;
    }
  }
  const match = decimal.exec(text);
  if (match === null) return undefined;
  const [, sign, whole = "", fraction = "", exponent = "0"] = match;
  const shift = Number(exponent) + digitsOf[unit] - fraction.length;
  if (Math.abs(shift) > 60) return undefined;
  const digits = BigInt(`${sign}${whole}${fraction}`);
  return shift >= 0 ? digits * 10n ** BigInt(shift) : floorDivide(digits, 10n ** BigInt(-shift));
}

const earliest = parseTime("1990-01-01");
const latest = parseTime("2100-01-01");

/** Whether an instant can be one of a trading run's. */
export function isLikelyTime(ns: Nanoseconds): boolean {
  return ns >= earliest && ns < latest;
}

/** The units in which a value is a time between 1990 and 2100: at most one, for each is a thousand of the next. */
export function likelyUnit(text: string): TimeUnit | undefined {
  return timeUnits.find((unit) => {
    const ns = instantIn(text, unit);
    return ns !== undefined && isLikelyTime(ns);
  });
}

/** An instant as a bound is written, rounded down to the unit. */
export function boundText(ns: Nanoseconds, unit: TimeUnit): string {
  return unit === "rfc3339" ? formatTime(ns) : floorDivide(ns, unitNs(unit)).toString();
}
