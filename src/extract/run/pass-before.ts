import { compareHeld, type HeldComparison } from "../plan/compare-held.ts";
import { contiguous, type HeldWindow, ofAboutRows, sumRows } from "../plan/held-window.ts";
import { probe } from "../plan/table-asks.ts";
import { asksOf, type RunContext } from "./run-context.ts";

/** A look that brings the same bytes explains nothing: two nodes that print rows differently each answer half of them. */
const mostLooks = 6;
/** Above this many rows a look takes many answers, so a different printing shows soon. */
const fewRows = 1_000_000;

/**
 * Why the bytes of a pass differ from those here, by asking the source again, each time on a new connection. "printed
 * otherwise": it sends the same rows, some with keys in another order, or `1.50` for `1.5`. "these": it always sends the
 * bytes that are here. "others": it sends other rows.
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
    // nodes that take turns might give every look to the same one without an extra request in between
    if (look % 2 === 1) await slices.add(() => probe(asksOf(input.table, context), parts[0]![0]!));
    for (const part of parts) {
      const compare = { ...input, windows: part, onEqual: async () => {}, onPrintedOtherwise };
      if ((await slices.add(() => compareHeld(compare))).length > 0) return "others";
    }
  }
  return isOtherwise ? "printed otherwise" : "these";
}
