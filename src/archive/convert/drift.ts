/** Names told of what the contract does not know: whoever has more says something else than rows. */
const mostNames = 100;
/** Names told in a line of a report. */
const mostTold = 10;
/** What a name is cut to, which whoever sends it can make as long as a line. */
const longestName = 100;
/** Names remembered while a segment is read; what is beyond is counted. */
const mostRemembered = 10_000;

const others = /^and (\d+) more$/;

/** What lines had that the contract does not know: each name once, whatever a gateway makes of them in bounds. */
export class Drift {
  readonly #names = new Set<string>();
  #more = 0;

  /** Takes a name in, or what `list` made of others. */
  add(name: string): void {
    const further = others.exec(name)?.[1];
    if (further !== undefined) {
      // the same fields were left out of each list, as far as can be told
      this.#more = Math.max(this.#more, Number(further));
      return;
    }
    const shown = name.length <= longestName ? name : `${name.slice(0, longestName)}…`;
    if (this.#names.has(shown)) return;
    if (this.#names.size < mostRemembered) this.#names.add(shown);
    else this.#more++;
  }

  /** The names in order; of many the first, and `and N more`. */
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

/** Drift of several files as that of all of them. */
export function driftOf(lists: Iterable<readonly string[]>): string[] {
  const drift = new Drift();
  for (const list of lists) for (const name of list) drift.add(name);
  return drift.list();
}
