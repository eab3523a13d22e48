import { formatScaled } from "../../model/fixed-point.ts";
import type { Random } from "../world/random.ts";
import type { Bar } from "./bars.ts";

/** Half the span of one of a bar's four moves: 0.05 % of the anchor. */
const moveDivisor = 2000;
/** How slowly the price returns to its anchor, in bars. It stays within a few percent of it in runs of any length. */
const pullDivisor = 4096;

/**
 * The prices and volumes of successive bars: a random walk in whole ticks that starts at an anchor, in ticks, and is
 * drawn back to it.
 */
export function priceWalk(
  random: Random,
  anchorTicks: number,
): () => Pick<Bar, "open" | "high" | "low" | "close" | "volume"> {
  const reach = Math.max(1, Math.floor(anchorTicks / moveDivisor));
  let last = anchorTicks;
  return () => {
    const open = last;
    let price = open + Math.floor((anchorTicks - open) / pullDivisor);
    let high = Math.max(open, price);
    let low = Math.min(open, price);
    for (let move = 0; move < 4; move += 1) {
      price = Math.max(10, price + random.below(2 * reach + 1) - reach);
      if (price > high) high = price;
      if (price < low) low = price;
    }
    last = price;
    const volume = formatScaled(random.below(2_000_000), 3);
    return { open, high, low, close: price, volume };
  };
}
