import { type HeldWindow, sumRows } from "../plan/held-window.ts";

/**
 * Merges two lists of windows, each disjoint and in order, into one. Where windows overlap, it takes those of the list with
 * more rows there, or of the first if both have as many.
 */
export function mostRows(one: readonly HeldWindow[], other: readonly HeldWindow[]): HeldWindow[] {
  const lists = [one, other].flatMap((windows) => windows.map((window) => ({ window, windows })));
  lists.sort(({ window: { from: a } }, { window: { from: b } }) => Number(a > b) - Number(a < b));
  const overlapping: (typeof lists)[] = [];
  let end: bigint | undefined;
  for (const listed of lists) {
    const { from, to } = listed.window;
    if (end === undefined || from >= end) overlapping.push([]);
    overlapping.at(-1)!.push(listed);
    if (end === undefined || to > end) end = to;
  }
  return overlapping.flatMap((group) => {
    const [mine, others] = [one, other].map((windows) =>
      group.filter((listed) => listed.windows === windows).map(({ window }) => window),
    ) as [HeldWindow[], HeldWindow[]];
    return sumRows(others) > sumRows(mine) ? others : mine;
  });
}
