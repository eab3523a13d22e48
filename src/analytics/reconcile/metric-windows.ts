import { millisecondsOf } from "../../model/text/quantity.ts";
import { floorDivide, timestampMin } from "../../model/time.ts";

const dayNs = 86_400_000_000_000n;

/**
 * The instant at which the window of a row that ends at `end` begins. Null for `run`, which begins with it; `day` and
 * `week` are so long; `month` and `year` those of the calendar, in UTC; a time with its unit, such as `7d` or `12h`.
 * Undefined for a word that says nothing about a window.
 */
export function windowBegin(window: string, end: bigint): bigint | null | undefined {
  switch (window) {
    case "run":
      return null;
    case "day":
      return end - dayNs;
    case "week":
      return end - 7n * dayNs;
    case "month":
    case "year": {
      // a window that ends at midnight belongs to the day before
      const date = new Date(Number(floorDivide(end - 1n, 1_000_000n)));
      const month = window === "month" ? date.getUTCMonth() : 0;
      return BigInt(Date.UTC(date.getUTCFullYear(), month, 1)) * 1_000_000n;
    }
    default: {
      const ms = millisecondsOf(window);
      if (!(ms > 0)) return undefined;
      const begin = end - BigInt(ms) * 1_000_000n;
      // the window may reach back before the first possible timestamp
      return begin < timestampMin ? timestampMin : begin;
    }
  }
}

/** A window of an account's equity points. */
export interface MetricWindow {
  /** Index in the keys of the points. */
  readonly key: number;
  /** Null if it begins with the run. */
  readonly from: bigint | null;
  readonly to: bigint;
}

/** Windows in layers: those of one layer and key do not overlap, so that a point is in one of them at most. */
export function layersOf(windows: readonly MetricWindow[]): readonly (readonly number[])[] {
  const layers: { readonly places: number[]; readonly ends: Map<number, bigint> }[] = [];
  const order = [...windows.keys()].sort((a, b) => Number(windows[a]!.to - windows[b]!.to));
  for (const place of order) {
    const { key, from, to } = windows[place]!;
    const fits = layers.find(({ ends }) => {
      const end = ends.get(key);
      return end === undefined || (from !== null && from >= end);
    });
    const layer = fits ?? { places: [], ends: new Map<number, bigint>() };
    if (fits === undefined) layers.push(layer);
    layer.places.push(place);
    layer.ends.set(key, to);
  }
  return layers.map((layer) => layer.places);
}
