import { hasDerivedSeq } from "../../model/profile/row-map.ts";
import type { FilterName, Table } from "../../model/profile/table.ts";
import type { RouteTraits } from "../../model/route-traits.ts";
import type { HistorySource } from "../../model/source.ts";
import { floorDivide, int64Max, int64Min, type Nanoseconds } from "../../model/time.ts";

/**
 * Where the seq of rows comes from: the gateway's own, or numbers given here to the rows of one timestamp, in the order of
 * their lines' bytes or in that of their arrival.
 */
export type SeqNumbers = "given" | "bytes" | "arrival";

/** How a table's rows can be requested, and how to interpret the answer. */
export interface Route {
  readonly numbers: SeqNumbers;
  /**
   * Bounds to ask with. Without `from` the table comes whole each time, and nothing can be asked for behind what came: then
   * `to` is not sent either.
   */
  readonly bounds: { readonly from: boolean; readonly to: boolean };
  /** Nanoseconds of the unit in which bounds are written: rows of one cannot be asked for apart. */
  readonly stepNs: bigint;
  readonly order: RouteTraits["order"];
  readonly pages: RouteTraits["pages"];
  readonly takesLimit: boolean;
  readonly filters: readonly FilterName[];
}

/** A table's route as its source says that it is; as the contract has it where the source says nothing. */
export function routeOf(source: Pick<HistorySource, "traits">, table: Table): Route {
  const traits = source.traits?.(table.name);
  if (traits === undefined) {
    return {
      numbers: "given",
      bounds: { from: true, to: true },
      stepNs: 1n,
      order: "ascending",
      pages: "none",
      takesLimit: true,
      filters: table.filters,
    };
  }
  const { map, bounds, order, pages, takesLimit } = traits;
  const filters = table.filters.filter((name) => traits.filters.includes(name));
  // newest first, a cap takes the oldest rows away: without `to` these cannot be asked for
  const isWhole = !bounds.from || (order === "descending" && !bounds.to);
  return {
    numbers: map !== undefined && hasDerivedSeq(map) ? map.ties : "given",
    bounds: isWhole ? { from: false, to: false } : bounds,
    stepNs: bounds.stepNs ?? 1n,
    ...{ order, pages, takesLimit, filters },
  };
}

/**
 * Bounds as they are sent: those that the route takes, where they are any, for the ends of the int64 range are no bounds.
 * What an answer has beyond one that is not sent is left out here.
 */
export function asked({ bounds }: Pick<Route, "bounds">, from: Nanoseconds, to: Nanoseconds) {
  return {
    from: bounds.from && from > int64Min ? from : undefined,
    to: bounds.to && to < int64Max ? to : undefined,
  };
}

/**
 * True where rows can be asked for only once the run has ended: they come in pages that move when rows come, and nothing
 * but the run's end closes what is asked for.
 */
export function needsEnd({ pages, bounds }: Pick<Route, "pages" | "bounds">): boolean {
  return pages === "number" && !bounds.to;
}

/** The first instant after `ts` that can be requested without the rows at `ts`. */
export function behindStep({ stepNs }: Pick<Route, "stepNs">, ts: Nanoseconds): Nanoseconds {
  return ts >= int64Max - stepNs ? int64Max : (floorDivide(ts, stepNs) + 1n) * stepNs;
}
