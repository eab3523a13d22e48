import { compareHeld, type HeldComparison } from "../plan/compare-held.ts";
import { contiguous, type HeldWindow, ofAboutRows, sumRows } from "../plan/held-window.ts";
import type { RunContext } from "./run-context.ts";

/** A look that brings the very bytes explains nothing: of two nodes that print rows each in its own way, each answers half. */
const mostLooks = 6;
/** Above so many rows a look is many answers, and one of them soon comes printed otherwise. */
const fewRows = 1_000_000;

/**
 * Whether two passes whose bytes differ brought the same rows: the source, asked again, gives all rows that are here, and
 * some of them printed otherwise (keys in another order, `1.50` for `1.5`). Where it always gives the bytes that are here,
 * the pass of before had other rows, for all that anybody knows.
 */
export async function isPrintedOtherwise(
  input: Omit<HeldComparison, "windows" | "onEqual">,
  windows: readonly HeldWindow[],
  { slices, sliceRows }: Pick<RunContext, "slices" | "sliceRows">,
): Promise<boolean> {
  let isOtherwise = false;
  const onPrintedOtherwise = () => {
    isOtherwise = true;
  };
  const parts = contiguous(windows).flatMap((stretch) => ofAboutRows(stretch, sliceRows));
  const looks = sumRows(windows) > fewRows ? 2 : mostLooks;
  for (let look = 0; look < looks && !isOtherwise; look++) {
    for (const part of parts) {
      const compare = { ...input, windows: part, onEqual: async () => {}, onPrintedOtherwise };
      if ((await slices.add(() => compareHeld(compare))).length > 0) return false;
    }
  }
  return isOtherwise;
}
