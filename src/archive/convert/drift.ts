/** Most names recorded outside the contract: a source with more is not sending rows. */
const mostNames = 100;
/** Most names in one line of a report. */
const mostTold = 10;
/** Names are cut to this length, because a sender can make one as long as a line. */
const longestName = 100;
/** Names remembered while a segment is read; any more are only counted. */
const mostRemembered = 10_000;

const others = /^and (\d+) more$/;

/** What lines contained outside the contract: each name once, within bounds whatever a gateway sends. */
export class Drift {
  readonly #names = new Set<string>();
  #more = 0;

  /** Adds a name, or the names of another drift's `list`. */
  add(name: string): void {
    const further = others.exec(name)?.[1];
    if (further !== undefined) {
      // as far as can be known, each list left out the same fields
      this.#more = Math.max(this.#more, Number(further));
      return;
    }
    const shown = name.length <= longestName ? name : `${name.slice(0, longestName)}…`;
    if (this.#names.has(shown)) return;
    if (this.#names.size < mostRemembered) this.#names.add(shown);
    else this.#more++;
  }

  /** The names in order; if there are many, the first ones and `and N more`. */
  list(most: number = mostNames): string[] {
    const sorted = [...this.#names].sort();
    const more = this.#more + Math.max(0, sorted.length - most);
    return more === 0 ? sorted : [...sorted.slice(0, most), `and ${more} more`];
  }
}

/** Drift in a line of a report. */
export function driftText(list: readonly string[]): string {
  const drift = new Drift();
  for (const name of list) drift.add(name);
  return drift.list(mostTold).join(", ");
}

/** The drift of several files, combined. */
export function driftOf(lists: Iterable<readonly string[]>): string[] {
  const drift = new Drift();
  for (const list of lists) for (const name of list) drift.add(name);
  return drift.list();
}
