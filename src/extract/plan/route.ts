import { hasDerivedSeq } from "../../model/profile/row-map.ts";
import type { FilterName, Table } from "../../model/profile/table.ts";
import type { RouteTraits } from "../../model/route-traits.ts";
import type { HistorySource } from "../../model/source.ts";
import { floorDivide, int64Max, int64Min, type Nanoseconds } from "../../model/time.ts";

/**
 * Where a row's seq comes from: the gateway's own, or numbers given here to rows with the same timestamp, in the order of
 * their lines' bytes or of their arrival.
 */
export type SeqNumbers = "given" | "bytes" | "arrival";

/** How a table's rows can be requested, and how to interpret the answer. */
export interface Route {
  readonly numbers: SeqNumbers;
  /**
   * Bounds to ask with. Without `from` the table comes whole each time, and an answer cannot be continued: then `to` is not
   * sent either.
   */
  readonly bounds: { readonly from: boolean; readonly to: boolean };
  /** Nanoseconds of the unit in which bounds are written: rows within one unit cannot be requested separately. */
  readonly stepNs: bigint;
  readonly order: RouteTraits["order"];
  readonly pages: RouteTraits["pages"];
  readonly takesLimit: boolean;
  readonly filters: readonly FilterName[];
}

/** A table's route as its source describes it, or that of the contract if the source says nothing. */
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
  // newest first, a cap cuts off the oldest rows, which cannot be requested without `to`
  const isWhole = !bounds.from || (order === "descending" && !bounds.to);
  return {
    numbers: map !== undefined && hasDerivedSeq(map) ? map.ties : "given",
    bounds: isWhole ? { from: false, to: false } : bounds,
    stepNs: bounds.stepNs ?? 1n,
    ...{ order, pages, takesLimit, filters },
  };
}

/**
 * The bounds to send: only those the route takes, and the ends of the int64 range mean no bound. Rows beyond a bound that
 * is not sent are left out here.
 */
export function asked({ bounds }: Pick<Route, "bounds">, from: Nanoseconds, to: Nanoseconds) {
  return {
    from: bounds.from && from > int64Min ? from : undefined,
    to: bounds.to && to < int64Max ? to : undefined,
  };
}

/**
 * True if rows can be requested only once the run has ended: numbered pages shift as rows arrive, and without `to` only the
 * run's end stops that.
 */
export function needsEnd({ pages, bounds }: Pick<Route, "pages" | "bounds">): boolean {
  return pages === "number" && !bounds.to;
}

/** The first instant after `ts` that can be requested without the rows at `ts`. */
export function behindStep({ stepNs }: Pick<Route, "stepNs">, ts: Nanoseconds): Nanoseconds {
  return ts >= int64Max - stepNs ? int64Max : (floorDivide(ts, stepNs) + 1n) * stepNs;
}
