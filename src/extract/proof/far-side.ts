import type { Nanoseconds } from "../../model/time.ts";
import type { Window } from "../plan/held-window.ts";
import { isRefusal, type TableAsks } from "../plan/table-asks.ts";
import type { RunDescription } from "../run/run-description.ts";
import { requireNone } from "./outer-ends.ts";
import { day, type Extent, piecesOf, type Rung } from "./rungs.ts";
import type { SeenSource } from "./seen-source.ts";

/** A table whose rows may begin long after its run, or end long before it. */
export interface FarSides {
  readonly asks: TableAsks;
  readonly run: Pick<RunDescription, "started" | "ended">;
  readonly until: Nanoseconds | undefined;
  readonly extent: Extent;
  readonly seen: SeenSource;
  /** True if storage facts prove the rows. */
  readonly isCounted: boolean;
}

/**
 * Looks for rows within the run that lie far from the table's known ones, and returns bounds with no others in them. A
 * gateway may silently move one bound towards the other: it then returns the known row, but not rows at the far end of
 * a long window. So windows longer than the rows of any answer have spanned are requested in pieces of that length.
 * Bounds far around a run, or none, may also mean something else (the last hours; all but the latest minutes): if
 * nothing counts the rows, the nearer windows are requested, too, once at each end, with bounds within the run. Returns
 * the rung's bounds if nothing lies outside; closer ones if the pieces are refused or too many. Throws `incomplete` if
 * rows turn up.
 */
export async function withinReach(far: FarSides, rung: Rung): Promise<Window> {
  const { run, until, extent, seen, isCounted } = far;
  const reach = seen.spanned > day ? seen.spanned : day;
  const started = run.started ?? extent.first;
  const ended = until ?? (run.ended ?? extent.last) + 1n;
  const isShown = async (window: Window) => {
    const isFar = window.to - window.from > reach;
    // already requested: far windows by a rung of days, near ones if they end at the rung's horizon
    if (isFar ? rung.stepNs !== undefined : isCounted || window.to === rung.to) return true;
    return (await isEmptyByPieces(far, window, reach)) || !isFar;
  };
  const ahead = await isShown({ from: started, to: extent.first });
  const behind = await isShown({ from: extent.last + 1n, to: ended });
  const near = { from: extent.first - reach, to: extent.last + reach };
  return {
    from: ahead || near.from < rung.from ? rung.from : near.from,
    to: behind || near.to > rung.to ? rung.to : near.to,
  };
}

/** True if a window has no rows, piece by piece; false if there would be too many pieces, or they are refused. */
async function isEmptyByPieces({ asks }: FarSides, window: Window, reach: Nanoseconds): Promise<boolean> {
  // a length that was answered without bounds may be refused with them
  for (const length of reach > day ? [reach, day] : [day]) {
    try {
      const pieces = piecesOf(window, length);
      if (pieces === undefined) continue;
      for (const piece of pieces) await requireNone(asks, piece);
      return true;
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
  }
  return false;
}
