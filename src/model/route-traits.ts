import type { RowMap } from "./profile/row-map.ts";
import { type FilterName, filterNames } from "./profile/table.ts";

/** How a source returns one table's rows, where that differs from the contract. */
export interface RouteTraits {
  /** Name of the profile that says so; undefined without one. */
  readonly profile?: string | undefined;
  /**
   * How rows were made canonical; undefined if they already are. Its `seq` says whether numbers are given or derived.
   */
  readonly map: RowMap | undefined;
  /** Whether each row names its run, and its instance; otherwise other runs' rows cannot be recognized. */
  readonly namesRun: boolean;
  readonly namesInstance: boolean;
  /** How an answer is assembled from the gateway's pages, which decides what can go missing between them. */
  readonly pages: "none" | "cursor" | "offset" | "number";
  /** Bounds that the gateway supports: without both, the table comes whole each time. */
  readonly bounds: {
    readonly from: boolean;
    readonly to: boolean;
    /** Nanoseconds per unit of bounds: closer times cannot be requested separately. Default: 1. */
    readonly stepNs?: bigint | undefined;
  };
  /** The gateway's order of rows; the source returns them ascending unless this is `none`. */
  readonly order: "ascending" | "descending" | "none";
  /** Filters that requests can use. */
  readonly filters: readonly FilterName[];
  /** Whether a limit of rows can be requested. */
  readonly takesLimit: boolean;
  /** Notable facts for `runs --wide` and the manifest, such as that the table is paged by offset. */
  readonly notes: readonly string[];
}

/** The traits of a route that follows the contract. */
export const usualTraits: RouteTraits = {
  map: undefined,
  namesRun: true,
  namesInstance: true,
  pages: "none",
  bounds: { from: true, to: true },
  order: "ascending",
  filters: filterNames,
  takesLimit: true,
  notes: [],
};
