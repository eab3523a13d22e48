/**
 * The results of `read` over the items, in their order, the next ones being read while one is used. As many are under
 * way or held as weigh `most` in all, and always one. Waits for those under way when the reader leaves early, so that
 * nothing is still being read once the iteration has ended.
 */
export async function* readAhead<Item, Result>(
  items: readonly Item[],
  weigh: (item: Item) => number,
  most: number,
  read: (item: Item) => Promise<Result>,
): AsyncGenerator<readonly [Item, Result]> {
  const ahead: { item: Item; weight: number; result: Promise<Result> }[] = [];
  let weight = 0;
  let next = 0;
  try {
    for (;;) {
      while (next < items.length) {
        const item = items[next]!;
        const own = weigh(item);
        if (ahead.length > 0 && weight + own > most) break;
        const result = read(item);
        // whoever takes it sees the failure; a reader that leaves early never does
        result.catch(() => undefined);
        ahead.push({ item, weight: own, result });
        weight += own;
        next++;
      }
      const first = ahead[0];
      if (first === undefined) return;
      const result = await first.result;
      yield [first.item, result];
      ahead.shift();
      weight -= first.weight;
    }
  } finally {
    await Promise.allSettled(ahead.map(({ result }) => result));
  }
}
