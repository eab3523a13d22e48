import { scale } from "vega";
import { extentOf } from "./value-axis.ts";

/** How many values lie between one edge and the next, of several lists on the same edges. */
export interface Histogram {
  /** Rising, evenly spaced, one more than there are bins; zero is one of them if it lies within. */
  readonly edges: readonly number[];
  /** By list and bin. */
  readonly counts: readonly Uint32Array[];
  /** How many values are smaller or larger than all edges; they count in the bins at the ends. */
  readonly beyond: number;
  readonly smallest: number;
  readonly largest: number;
}

const mostBins = 60;

/**
 * Bins as wide as Freedman and Diaconis advise (two interquartile ranges over the cube root of the count), rounded to a
 * step of 1, 2 or 5, sixty at most. If single values lie far out, the edges hold the inner 99.8 %.
 * @param lists of finite numbers, at least one of them
 */
export function histogram(lists: readonly Float64Array[]): Histogram {
  const all = new Float64Array(lists.reduce((sum, list) => sum + list.length, 0));
  let place = 0;
  for (const list of lists) {
    all.set(list, place);
    place += list.length;
  }
  all.sort();
  const [smallest, largest] = extentOf([all[0]!, all.at(-1)!]);
  const at = (share: number) => all[Math.round(share * (all.length - 1))]!;
  let [low, high] = [smallest, largest];
  const inner = at(0.999) - at(0.001);
  if (inner > 0 && high - low > 3 * inner) [low, high] = [at(0.001), at(0.999)];
  const size = Math.max(Math.abs(low), Math.abs(high));
  if (high - low <= size * 1e-12) {
    const room = size === 0 ? 0.01 : size * 0.1;
    [low, high] = [low - room, high + room];
  }
  const advised = (2 * (at(0.75) - at(0.25))) / Math.cbrt(all.length);
  // d3 rounds to the nearest step, mostly to a wider one
  const wanted = advised > 0 ? (1.4 * (high - low)) / advised : 10;
  const ticks: number[] = scale("linear")()
    .domain([low, high])
    .nice(Math.min(mostBins - 4, Math.max(8, wanted)))
    .ticks(Math.min(mostBins - 4, Math.max(8, wanted)));
  const edges = evenEdges(ticks, low, high);
  const counts = lists.map((list) => countsOf(list, edges));
  const beyond = all.reduce((sum, value) => sum + (value < edges[0]! || value > edges.at(-1)! ? 1 : 0), 0);
  return { edges, counts, beyond, smallest, largest };
}

function evenEdges(ticks: readonly number[], low: number, high: number): number[] {
  if (ticks.length >= 3) return [...ticks];
  return Array.from({ length: 9 }, (_, edge) => low + ((high - low) * edge) / 8);
}

function countsOf(list: Float64Array, edges: readonly number[]): Uint32Array {
  const bins = edges.length - 1;
  const counts = new Uint32Array(bins);
  const binsPerUnit = bins / (edges.at(-1)! - edges[0]!);
  for (const value of list) {
    let bin = Math.min(bins - 1, Math.max(0, Math.floor((value - edges[0]!) * binsPerUnit)));
    // division may put a value on an edge into the bin beside its own
    if (bin > 0 && value < edges[bin]!) bin--;
    else if (bin < bins - 1 && value >= edges[bin + 1]!) bin++;
    counts[bin]!++;
  }
  return counts;
}
