/** How much is worked on at once. */
export interface FlightLimits {
  /** Items in their first part, which costs the most. */
  readonly lanes: number;
  /** All items in progress. */
  readonly alive: number;
}

/** What an item in progress can signal. */
export interface Flight {
  /** Lets another item begin in its lane while it goes on. */
  readonly leaveLane: () => void;
  /** Lets others begin beside the first, which starts alone so that an error common to all fails only one. */
  readonly openLanes: () => void;
}

/** The result of one item. */
export interface Landed<T, R> {
  readonly item: T;
  readonly result: R;
}

/** Results come in the order of their items, unless more than this many wait for a slow one. */
const mostWaiting = 64;

/**
 * Works on several items at a time, begun in order, and yields the result of each. `begin` never fails. `mayBegin` says
 * whether another may begin; `isLast` is called with whether no other will for now. Returns how many were begun.
 */
export async function* inFlight<T, R>(
  items: readonly T[],
  { lanes, alive: mostAlive }: FlightLimits,
  begin: (item: T, index: number, flight: Flight) => Promise<R>,
  mayBegin: () => boolean = () => true,
  isLast: (is: boolean) => void = () => {},
): AsyncGenerator<Landed<T, R>, number> {
  const landed = new Map<number, R>();
  const flying = new Set<Promise<void>>();
  let begun = 0;
  /** The first item not yet yielded, and later ones that have been. */
  let told = 0;
  const toldAhead = new Set<number>();
  let inLane = 0;
  let isOpen = false;
  let changed = Promise.withResolvers<void>();
  const next = () => begun < items.length && mayBegin();
  const start = (index: number) => {
    let isInLane = true;
    const leaveLane = () => {
      if (!isInLane) return;
      isInLane = false;
      inLane--;
      changed.resolve();
    };
    const openLanes = () => {
      if (isOpen) return;
      isOpen = true;
      changed.resolve();
    };
    inLane++;
    const flight = begin(items[index]!, index, { leaveLane, openLanes }).then((result) => {
      landed.set(index, result);
      leaveLane();
      openLanes();
      flying.delete(flight);
      changed.resolve();
    });
    flying.add(flight);
  };
  const toTell = () => {
    while (toldAhead.delete(told)) told++;
    if (landed.has(told)) return told++;
    if (landed.size <= mostWaiting) return undefined;
    const oldest = Math.min(...landed.keys());
    toldAhead.add(oldest);
    return oldest;
  };
  try {
    for (;;) {
      while (next() && inLane < (isOpen ? lanes : 1) && flying.size < mostAlive) start(begun++);
      isLast(!next() || flying.size >= mostAlive);
      for (let index = toTell(); index !== undefined; index = toTell()) {
        const result = landed.get(index)!;
        landed.delete(index);
        yield { item: items[index]!, result };
      }
      if (landed.size === 0 && flying.size === 0 && !next()) return begun;
      if (flying.size === 0) continue;
      await changed.promise;
      changed = Promise.withResolvers<void>();
    }
  } finally {
    // a caller that stops listening waits for work in progress, which holds locks and files
    await Promise.all(flying);
  }
}
