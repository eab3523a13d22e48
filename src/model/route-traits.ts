import type { RowMap } from "./profile/row-map.ts";
import { type FilterName, filterNames } from "./profile/table.ts";

/** What is known ahead of how a source gives one table's rows, beyond what the contract says of every source. */
export interface RouteTraits {
  /** Name of the profile that says all this; undefined where none does. */
  readonly profile?: string | undefined;
  /** How rows were made canonical; undefined where they come so. Its `seq` says whether numbers are given or derived. */
  readonly map: RowMap | undefined;
  /** Whether each row names its run, and its instance: else another run's rows cannot be told from this one's. */
  readonly namesRun: boolean;
  readonly namesInstance: boolean;
  /** How one answer is put together out of the gateway's: what can go missing between pages depends on it. */
  readonly pages: "none" | "cursor" | "offset" | "number";
  /** Bounds the gateway takes: without both, the table comes whole each time. */
  readonly bounds: {
    readonly from: boolean;
    readonly to: boolean;
    /** Nanoseconds of the unit that bounds are written in: what cannot be asked apart comes together. Default: 1. */
    readonly stepNs?: bigint | undefined;
  };
  /** The order the gateway sends in; what the source hands out is ascending unless this is `none`. */
  readonly order: "ascending" | "descending" | "none";
  /** Filters that can be asked for. */
  readonly filters: readonly FilterName[];
  /** Whether a largest number of rows can be asked for. */
  readonly takesLimit: boolean;
  /** What is worth telling of the table in `ls` and the manifest, such as that it is paged by offset. */
  readonly notes: readonly string[];
}

/** A route as the contract has it. */
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
