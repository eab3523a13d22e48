import { compareHeld, type HeldComparison } from "../plan/compare-held.ts";
import { contiguous, type HeldWindow, ofAboutRows, sumRows } from "../plan/held-window.ts";
import { probe } from "../plan/table-asks.ts";
import { asksOf, type RunContext } from "./run-context.ts";

/** A look that brings the very bytes explains nothing: of two nodes that print rows each in its own way, each answers half. */
const mostLooks = 6;
/** Above so many rows a look is many answers, and one of them soon comes printed otherwise. */
const fewRows = 1_000_000;

/**
 * What there is instead of the rows of a pass whose bytes differ from those here. "printed otherwise": the source, asked
 * again, gives all rows that are here, and some of them with keys in another order, or `1.50` for `1.5`. "these": it
 * always gives the bytes that are here, each time on a new connection. "others": it gives other rows.
 */
export async function lookAtPassBefore(
  input: Omit<HeldComparison, "windows" | "onEqual">,
  windows: readonly HeldWindow[],
  context: RunContext,
): Promise<"printed otherwise" | "these" | "others"> {
  const { slices, sliceRows, work } = context;
  let isOtherwise = false;
  const onPrintedOtherwise = () => {
    isOtherwise = true;
  };
  const parts = contiguous(windows).flatMap((stretch) => ofAboutRows(stretch, sliceRows));
  const looks = sumRows(windows) > fewRows ? 2 : mostLooks;
  for (let look = 0; look < looks && !isOtherwise; look++) {
    work.source.reconnect?.();
    // of nodes that answer by turn the same one may have each look, unless there is a question more between them
    if (look % 2 === 1) await slices.add(() => probe(asksOf(input.table, context), parts[0]![0]!));
    for (const part of parts) {
      const compare = { ...input, windows: part, onEqual: async () => {}, onPrintedOtherwise };
      if ((await slices.add(() => compareHeld(compare))).length > 0) return "others";
    }
  }
  return isOtherwise ? "printed otherwise" : "these";
}
