import { floorDivide, type Nanoseconds, type TimeBounds } from "../../model/time.ts";

const units = [
  ["microsecond", 1_000n],
  ["millisecond", 1_000_000n],
  ["second", 1_000_000_000n],
] as const;

/**
 * Why a gateway may have given a row beyond bounds that were asked for, to stand behind our own words: it compares times in
 * a unit in which the row is at the bound, or takes the end for inclusive. Empty where neither says so. `stepNs` is the
 * unit in which bounds are sent.
 */
export function coarseBoundsText(
  ts: Nanoseconds,
  { from, to }: TimeBounds,
  stepNs: Nanoseconds = 1n,
): string {
  if (ts === to && stepNs === 1n)
    return "; it lies at the end itself, which the gateway seems to take for inclusive";
  // an inclusive bound is sent as the last instant ahead of the end
  const bounds = from !== undefined && ts < from ? [from] : to === undefined ? [] : [to, to - 1n];
  const unit = units.find(
    ([, ns]) => ns >= stepNs && bounds.some((bound) => floorDivide(bound, ns) === floorDivide(ts, ns)),
  );
  if (unit === undefined) return "";
  const [name] = unit;
  return `; it lies in the same ${name} as the bound, so the gateway seems to compare times in whole ${name}s`;
}

/** What to do about it. */
export const coarseBoundsHint =
  "Have the gateway's operator compare bounds with the whole time of a row; where it can take them in a finer unit than the profile sends, set `times` in the profile. Nothing of this table was taken.";
