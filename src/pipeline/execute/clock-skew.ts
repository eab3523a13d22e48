import { durationText } from "../../model/text/duration-text.ts";
import type { Nanoseconds } from "../../model/time.ts";

/** A warning about a gateway's clock; null if it is close enough to ours, or unknown. */
export function skewText(
  ours: Nanoseconds,
  theirs: Nanoseconds | undefined,
  settleNs: bigint,
): string | null {
  if (theirs === undefined) return null;
  const ahead = theirs - ours;
  const apart = ahead < 0n ? -ahead : ahead;
  // its Date header has whole seconds
  if (apart <= settleNs / 2n || apart <= 1_000_000_000n) return null;
  const by = durationText(Number(apart / 1_000_000n));
  return (
    `the gateway's clock is ${by} ${ahead < 0n ? "behind" : "ahead of"} this machine's, more than half of settle: ` +
    "horizons go by the earlier of the two; set the clocks, or give a longer settle"
  );
}
