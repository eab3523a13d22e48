/** A limit on reading in advance; several iterations may share one. */
export interface AheadBudget {
  left: number;
}

/**
 * The results of `read` over the items, in order, reading the next ones while one is used. At least one item is always
 * being read or held, and as many more as the budget allows by their weight. If the caller leaves early, waits for
 * reads in progress, so none continues after the iteration.
 */
export async function* readAhead<Item, Result>(
  items: readonly Item[],
  weigh: (item: Item) => number,
  budget: AheadBudget,
  read: (item: Item) => Promise<Result>,
): AsyncGenerator<readonly [Item, Result]> {
  const ahead: { item: Item; charged: number; result: Promise<Result> }[] = [];
  let next = 0;
  try {
    for (;;) {
      while (next < items.length) {
        const item = items[next]!;
        const charged = ahead.length === 0 ? 0 : weigh(item);
        if (charged > budget.left) break;
        const result = read(item);
        // the consumer sees the failure; one that leaves early never does
        result.catch(() => undefined);
        ahead.push({ item, charged, result });
        budget.left -= charged;
        next++;
      }
      const first = ahead[0];
      if (first === undefined) return;
      const result = await first.result;
      yield [first.item, result];
      ahead.shift();
      budget.left += first.charged;
    }
  } finally {
    await Promise.allSettled(ahead.map(({ result }) => result));
    for (const { charged } of ahead) budget.left += charged;
  }
}
