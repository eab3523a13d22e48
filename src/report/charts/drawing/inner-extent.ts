import { extentOf } from "./value-axis.ts";

/**
 * From the smallest value to the largest, or the extent of the inner 99.8 % if single values lie so far out that all
 * others would be crowded into a corner.
 * @param values finite
 */
export function innerExtent(values: Float64Array): [number, number] {
  const [low, high] = extentOf(values);
  const sorted = values.toSorted();
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))]!;
  const inner = at(0.999) - at(0.001);
  return inner > 0 && high - low > 3 * inner ? [at(0.001), at(0.999)] : [low, high];
}
