import type { Nanoseconds } from "../../model/time.ts";
import type { Window } from "../plan/held-window.ts";
import { isRefusal, type TableAsks } from "../plan/table-asks.ts";
import type { RunDescription } from "../run/run-description.ts";
import { requireNone } from "./outer-ends.ts";
import { day, type Extent, piecesOf, type Rung } from "./rungs.ts";
import type { SeenSource } from "./seen-source.ts";

/** A table whose rows may begin long after its run does, or end long before. */
export interface FarSides {
  readonly asks: TableAsks;
  readonly run: Pick<RunDescription, "started" | "ended">;
  readonly until: Nanoseconds | undefined;
  readonly extent: Extent;
  readonly seen: SeenSource;
  /** True where storage facts prove the rows. */
  readonly isCounted: boolean;
}

/**
 * Looks for rows within the run that lie far from the table's own, and gives the bounds in which none can lie. A gateway
 * may move a bound towards the other without a word; it then shows the known row, and not what lies at the far end of so
 * long a window. So what lies farther off than one answer's rows were ever seen to reach is asked for in pieces of that
 * length. Bounds far around a run, or none, may also have another meaning (the last hours, what is older than some minutes):
 * where nothing counts the rows, what lies nearer is asked for as well, once at each end, by bounds within the run.
 * The rung's bounds where nothing lies so far off; closer ones where the pieces are refused, or too many. Throws
 * `incomplete` where rows turn up.
 */
export async function withinReach(far: FarSides, rung: Rung): Promise<Window> {
  const { run, until, extent, seen, isCounted } = far;
  const reach = seen.spanned > day ? seen.spanned : day;
  const started = run.started ?? extent.first;
  const ended = until ?? (run.ended ?? extent.last) + 1n;
  const isShown = async (window: Window) => {
    const isFar = window.to - window.from > reach;
    // asked already: far off by the days of the rung, nearby where it ends with the horizon
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

/** True when a window holds nothing, piece by piece; false where it takes too many, or they are refused. */
async function isEmptyByPieces({ asks }: FarSides, window: Window, reach: Nanoseconds): Promise<boolean> {
  // what was answered without bounds may be refused with them
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
