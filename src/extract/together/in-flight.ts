/** How much is worked on at once. */
export interface FlightLimits {
  /** Items in their first part, which costs the most. */
  readonly lanes: number;
  /** All items in progress. */
  readonly alive: number;
}

/** What one who is under way tells of itself. */
export interface Flight {
  /** Another may begin in its lane, while it goes on. */
  readonly leaveLane: () => void;
  /** Others may begin beside the first, which until then is alone: what fails for all has to fail for one only. */
  readonly openLanes: () => void;
}

/** The result of one item. */
export interface Landed<T, R> {
  readonly item: T;
  readonly result: R;
}

/** Results are told in the order of their items, unless so many wait for one that is long about. */
const mostWaiting = 64;

/**
 * Works on several items at a time, begun in their order, and yields what came of each. `begin` never fails. `mayBegin` says whether another is begun at all, and `isLast` hears
 * whether no other will be for now. Gives how many were begun.
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
  /** The first that has not been told of, and those behind it that have. */
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
