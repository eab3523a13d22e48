import { z } from "zod";
import { formatTime, int64Max, int64Min, parseTime } from "../../model/time.ts";

/** For `--help`. */
export const instantHelp =
  "RFC 3339, its date alone (UTC), UNIX nanoseconds, or a number with its unit, such as 1640995200s";

const unitNs: Readonly<Record<string, bigint>> = { ns: 1n, us: 1_000n, ms: 1_000_000n, s: 1_000_000_000n };

/** Below this a bare number is more likely seconds or milliseconds than a time in the first eleven days of 1970. */
const leastBare = 10n ** 15n;

/**
 * Parses a time into nanoseconds: RFC 3339, its date alone, UNIX nanoseconds, or a number with its unit. Refuses a bare
 * number that may well be meant in another unit.
 */
export const instant = z.string().transform((text, context) => {
  const [, digits, unit] = /^(-?\d{1,20})(ns|us|ms|s)?$/.exec(text) ?? [];
  if (digits !== undefined && unit !== undefined) {
    const ns = BigInt(digits) * unitNs[unit]!;
    if (ns >= int64Min && ns <= int64Max) return ns;
    context.addIssue(`is outside the range of 64-bit nanoseconds: ${text}`);
    return z.NEVER;
  }
  if (digits !== undefined && isAmbiguous(BigInt(digits))) {
    context.addIssue(twoReadings(BigInt(digits)));
    return z.NEVER;
  }
  try {
    return parseTime(text);
  } catch {
    context.addIssue(
      "must be a time: RFC 3339 such as 2022-01-01T00:00:00Z, its date alone (UTC), UNIX nanoseconds, or a number with its unit (ns, us, ms, s)",
    );
    return z.NEVER;
  }
});

/** Zero is the same instant in every unit. */
function isAmbiguous(number: bigint): boolean {
  return number !== 0n && number > -leastBare && number < leastBare;
}

function twoReadings(number: bigint): string {
  const [unit, word] = likelyUnit(number < 0n ? -number : number);
  const shown = (ns: bigint) => formatTime(ns).replace(/\.?0+Z$/, "Z");
  return `is ambiguous: ${number} is ${shown(number)} in nanoseconds, or ${shown(number * unitNs[unit]!)} in ${word}; write ${number}ns, ${number}${unit} or an RFC 3339 time`;
}

/** The unit in which a number of this size is a time near the present. */
function likelyUnit(size: bigint): readonly [unit: string, word: string] {
  if (size < 10n ** 11n) return ["s", "seconds"];
  return size < 10n ** 14n ? ["ms", "milliseconds"] : ["us", "microseconds"];
}
