import { RunvaultError } from "../../model/error.ts";
import { floorDivide, type Nanoseconds, type TimeBounds } from "../../model/time.ts";

/** Why an error was thrown: the row came from outside of these bounds. */
export class OutsideBounds extends Error {
  readonly ts: Nanoseconds;
  readonly bounds: TimeBounds;
  constructor(ts: Nanoseconds, bounds: TimeBounds) {
    super(`a row at ${ts} lies outside of bounds`);
    this.ts = ts;
    this.bounds = bounds;
  }
}

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
  // an inclusive bound is sent as the last instant before the end
  const bounds = from !== undefined && ts < from ? [from] : to === undefined ? [] : [to, to - 1n];
  const unit = units.find(
    ([, ns]) => ns >= stepNs && bounds.some((bound) => floorDivide(bound, ns) === floorDivide(ts, ns)),
  );
  if (unit === undefined) return "";
  return wholeUnits(unit[0]);
}

/** The ts_event of rows that a gateway gives for bounds, as they come. */
export type TimesWithin = (bounds: TimeBounds) => AsyncIterable<Nanoseconds>;

const second = 1_000_000_000n;

/**
 * The same by a few questions more, for one row does not tell: bounds that only a gateway that ignores them, or compares in
 * a unit as coarse, answers with the row, or with one on the wrong side. The coarsest first.
 */
export async function boundsCause(
  { ts, bounds }: OutsideBounds,
  timesWithin: TimesWithin,
  stepNs: Nanoseconds = 1n,
): Promise<WhyOutside> {
  const { from, to } = bounds;
  if (from !== undefined && ts < from) {
    const isGiven = async (asked: Nanoseconds) => {
      for await (const time of timesWithin({ from: asked })) return time <= ts;
      return false;
    };
    if (await isGiven(ts + 2n * second)) return ignores("from");
    for (const [name, ns] of [...units].reverse()) {
      const end = (floorDivide(ts, ns) + 1n) * ns;
      if (ns >= stepNs && end - 1n > ts && (await isGiven(end - 1n)))
        return { text: wholeUnits(name), hint: coarseBoundsHint };
    }
  } else if (to !== undefined) {
    const before = to - 2n * second;
    for await (const time of timesWithin({ from: before - 1n, to: before })) {
      if (time >= to) return ignores("to");
    }
  }
  return whyByRow({ ts, bounds }, stepNs);
}

/** Why a row came from outside of bounds, as a suffix, and what to do. */
export interface WhyOutside {
  readonly text: string;
  readonly hint: string;
}

/** The same by the row alone. */
export function whyByRow(
  { ts, bounds }: Pick<OutsideBounds, "ts" | "bounds">,
  stepNs?: Nanoseconds,
): WhyOutside {
  const text = coarseBoundsText(ts, bounds, stepNs);
  return { text, hint: text === "" ? notKeptHint : coarseBoundsHint };
}

function ignores(bound: string): WhyOutside {
  return {
    text: `, as with other bounds: the gateway seems to ignore ${bound}, or to shift it`,
    hint: notKeptHint,
  };
}

function wholeUnits(name: string): string {
  return `; it lies in the same ${name} as the bound, so the gateway seems to compare times in whole ${name}s`;
}

/** What to do about coarse bounds. */
const coarseBoundsHint =
  "Have the gateway's operator compare bounds with the whole time of a row; where it can take them in a finer unit than the profile sends, set `times` in the profile. Nothing of this table was taken.";

const notKeptHint =
  "Report it to the gateway's operator: it does not keep to time bounds. Nothing of this table was taken.";

/** The error of an answer that has a row outside of what it was asked for. */
export function outsideWindow(cause: OutsideBounds, { text, hint } = whyByRow(cause)): RunvaultError {
  const { from = "", to = "" } = cause.bounds;
  return new RunvaultError(
    "history_identity_conflict",
    `a row at ${cause.ts} lies outside the window asked for, [${from}, ${to})${text}`,
    { hint, cause },
  );
}
