import { RunvaultError } from "../../model/error.ts";
import { floorDivide, type Nanoseconds, type TimeBounds } from "../../model/time.ts";

/** The cause of an error: a row outside these bounds. */
export class OutsideBounds extends Error {
  readonly ts: Nanoseconds;
  readonly bounds: TimeBounds;
  constructor(ts: Nanoseconds, bounds: TimeBounds) {
    super(`a row at ${ts} lies outside the bounds`);
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
 * Why a gateway may have sent a row outside the bounds asked for, as a suffix for our own message: it compares times in a
 * unit in which the row is at the bound, or treats the end as inclusive. Empty if neither explains the row. `stepNs` is the
 * unit in which bounds are sent.
 */
export function coarseBoundsText(
  ts: Nanoseconds,
  { from, to }: TimeBounds,
  stepNs: Nanoseconds = 1n,
): string {
  if (ts === to && stepNs === 1n)
    return "; it lies exactly at the end, which the gateway seems to treat as inclusive";
  // an inclusive bound is sent as the last instant before the end
  const bounds = from !== undefined && ts < from ? [from] : to === undefined ? [] : [to, to - 1n];
  const unit = units.find(
    ([, ns]) => ns >= stepNs && bounds.some((bound) => floorDivide(bound, ns) === floorDivide(ts, ns)),
  );
  if (unit === undefined) return "";
  return wholeUnits(unit[0]);
}

/** The ts_event of the rows that a gateway sends for these bounds, as they arrive. */
export type TimesWithin = (bounds: TimeBounds) => AsyncIterable<Nanoseconds>;

const second = 1_000_000_000n;

/**
 * The same by a few more requests, because one row does not show the cause. Only a gateway that ignores their bounds, or
 * compares them in that unit, answers with the row or one on the wrong side. Coarsest unit first.
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

/** Why a row lies outside the bounds, as a suffix for a message, and what to do. */
export interface WhyOutside {
  readonly text: string;
  readonly hint: string;
}

/** The same from the row alone, without requests. */
export function whyByRow(
  { ts, bounds }: Pick<OutsideBounds, "ts" | "bounds">,
  stepNs?: Nanoseconds,
): WhyOutside {
  const text = coarseBoundsText(ts, bounds, stepNs);
  return { text, hint: text === "" ? notKeptHint : coarseBoundsHint };
}

function ignores(bound: string): WhyOutside {
  return {
    text: `, and with other bounds too: the gateway seems to ignore ${bound} or shift it`,
    hint: notKeptHint,
  };
}

function wholeUnits(name: string): string {
  return `; it lies in the same ${name} as the bound, so the gateway seems to compare times in whole ${name}s`;
}

const coarseBoundsHint =
  "Ask the gateway's operator to compare bounds with a row's full timestamp. If the gateway accepts a finer unit than the profile sends, set `times` in the profile. No new rows of this table were archived.";

const notKeptHint =
  "Tell the gateway's operator that the gateway does not respect time bounds. No new rows of this table were archived.";

/** The error for an answer with a row outside the window asked for. */
export function outsideWindow(cause: OutsideBounds, { text, hint } = whyByRow(cause)): RunvaultError {
  const { from = "", to = "" } = cause.bounds;
  return new RunvaultError(
    "history_identity_conflict",
    `a row at ${cause.ts} lies outside the window asked for, [${from}, ${to})${text}`,
    { hint, cause },
  );
}
