import { agreeing, countText } from "../../model/text/plural.ts";
import { formatTime } from "../../model/time.ts";
import type { AccountKey } from "./account-key.ts";

/** Events that move money for which there are no points. */
export interface StrayMoves extends AccountKey {
  readonly count: number;
  /** Of the first of them. */
  readonly seq: bigint;
  readonly ts: bigint;
}

/** Whether it may be money of these points: anything that its events do not name may match. */
export function mayBeOf(stray: StrayMoves, key: AccountKey): boolean {
  return (["account", "portfolio", "currency"] as const).every(
    (what) => stray[what] === "" || stray[what] === key[what],
  );
}

/** The problem in words, with its cause. */
export function strayText({ count, seq, ts, ...of }: StrayMoves): string {
  const named = Object.entries(of).map(([what, name]) => (name === "" ? `no ${what}` : `${what} ${name}`));
  return `${countText(count, "event")} ${agreeing(count, "moves", "move")} money of ${named.join(", ")}, which no equity point has, the first with seq ${seq} at ${formatTime(ts)}: only the gateway can say whose it is`;
}
