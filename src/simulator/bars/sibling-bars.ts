import { randomFrom } from "../world/random.ts";
import type { Bar } from "./bars.ts";
import { priceWalk } from "./price-walk.ts";

/** One bar in this many is missing, so that a position is sometimes marked to an older close. */
const gapEvery = 16;

/** The bars of an instrument other than a run's first: its own prices, at the times of the first one's bars. */
export interface SiblingBars {
  /** A price typical for it, in ticks of the first instrument. */
  readonly typicalTicks: number;
  /** How many bars it has while the first one has this many. */
  count(bars: number): number;
  /** Its bar at the time of a bar of the first instrument; undefined if it has none. Bars are passed in order. */
  beside(bar: Bar, index: number): Bar | undefined;
}

/** The bars of instrument `number`, from 1 on; `typicalTicks` is of the first instrument, number 0. */
export function siblingBars(seed: string, number: number, typicalTicks: number): SiblingBars {
  const anchor = Math.max(20, Math.floor(typicalTicks / (number + 1)));
  const walk = priceWalk(randomFrom(`${seed} bars ${number}`), anchor);
  // from the third bar on, so that each instrument has two bars even in the shortest run
  const gap = 2 + ((5 * number) % (gapEvery - 2));
  return {
    typicalTicks: anchor,
    count: (bars) => bars - Math.floor((bars - 1 - gap + gapEvery) / gapEvery),
    beside({ closeMicros, closeNanos, volume }, index) {
      if (index % gapEvery === gap) return undefined;
      const bar = { closeMicros, closeNanos, ...walk() };
      return volume === "" ? { ...bar, volume } : bar;
    },
  };
}
