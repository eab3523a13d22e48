import type { Evidence } from "../../archive/manifest/evidence.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { Window } from "../plan/held-window.ts";

/** The rows of a window that are here. */
export interface RowsHere {
  readonly rows: number;
  readonly first: Nanoseconds | undefined;
  readonly last: Nanoseconds | undefined;
}

/**
 * What a gateway reported and sent about one table of a run. It only grows: a later answer with less does not reduce
 * it, because it may come from a lagging node. Code that decides to drop evidence calls `letGo`.
 */
export class EvidenceRecord {
  readonly #items = new Map<string, Evidence>();
  /** Not yet in the journal. */
  #unnoted: Evidence[] = [];
  #isCut = false;
  /** The last count of each window. */
  readonly #latest = new Map<string, number>();
  #begins: Nanoseconds | undefined;
  #movesBack = false;

  /** Adopts the evidence in the journal, or from an earlier job. */
  resume(items: readonly Evidence[]): void {
    for (const item of items) this.#items.set(keyOf(item), item);
  }

  get items(): readonly Evidence[] {
    return [...this.#items.values()];
  }

  learn(seen: Evidence): void {
    const key = keyOf(seen);
    this.#latest.set(key, seen.rows);
    const before = this.#items.get(key);
    const item = before === undefined ? seen : most(before, seen);
    if (before !== undefined && isSame(before, item)) return;
    this.#items.set(key, item);
    this.#unnoted.push(item);
  }

  /** The last count of the same window; undefined if there was none in this command. */
  latestOf(seen: Evidence): number | undefined {
    return this.#latest.get(keyOf(seen));
  }

  /** Records where the gateway says that its rows begin. */
  begins(first: Nanoseconds): void {
    if (this.#begins !== undefined && first < this.#begins) this.#movesBack = true;
    this.#begins = first;
  }

  /** True if the beginning moved back: rows that seemed gone came again from a node that has more, so none is gone. */
  get movesBack(): boolean {
    return this.#movesBack;
  }

  letGo(isGone: (item: Evidence) => boolean): void {
    for (const [key, item] of this.#items) {
      if (!isGone(item)) continue;
      this.#items.delete(key);
      this.#isCut = true;
    }
  }

  /** New entries for the journal; `isAfresh` if they replace all earlier ones. */
  unnoted(): { readonly evidence: readonly Evidence[]; readonly isAfresh: boolean } | undefined {
    const isAfresh = this.#isCut;
    const evidence = isAfresh ? this.items : this.#unnoted;
    if (!isAfresh && evidence.length === 0) return undefined;
    this.#unnoted = [];
    this.#isCut = false;
    return { evidence, isAfresh };
  }
}

/** The rule: rows here are less than was seen if they are fewer, begin later or end earlier. */
export function isLess(here: RowsHere, { rows, first, last }: Evidence): boolean {
  if (here.rows < rows) return true;
  if (rows === 0) return false;
  return (
    (first !== null && here.first !== undefined && here.first > BigInt(first)) ||
    (last !== null && here.last !== undefined && here.last < BigInt(last))
  );
}

/**
 * True if hashes can tell the rows here from those that came: as many, with one version. Without a version they
 * may legitimately have changed in place.
 */
export function needsHash(here: RowsHere, { rows, hash, version }: Evidence, now: string | null): boolean {
  return hash !== null && here.rows === rows && version !== null && version === now;
}

/**
 * Whether a version in six consecutive descriptions shows that rows legitimately changed: it is new to the command and
 * the record, and is a larger whole number. One that returns comes from another node.
 */
export function isNewVersion(version: string | undefined, before: ReadonlySet<string>): boolean {
  if (version === undefined || before.has(version)) return false;
  const isWhole = (text: string) => /^\d{1,40}$/.test(text);
  return !isWhole(version) || [...before].every((one) => !isWhole(one) || BigInt(one) < BigInt(version));
}

/**
 * True for evidence from another version than the run's current one. If an earlier job saw the run without a version,
 * the fact that it has one now does not show that these rows changed.
 */
export function isOfOtherVersion({ version, isOlder }: Evidence, now: string | null): boolean {
  return version !== now && !(version === null && isOlder === true);
}

export function windowOf({ from, to }: Evidence): Window {
  return { from: BigInt(from), to: BigInt(to) };
}

function keyOf({ by, from, to, firstKey, lastKey, hash, version, isOlder }: Evidence): string {
  return JSON.stringify([by, from, to, firstKey, lastKey, hash, version, isOlder]);
}

/** The larger count and wider range of both. */
function most(one: Evidence, other: Evidence): Evidence {
  const pick = (a: string | null, b: string | null, isFirst: boolean) => {
    if (a === null || b === null) return a ?? b;
    return BigInt(a) < BigInt(b) === isFirst ? a : b;
  };
  return {
    ...other,
    rows: Math.max(one.rows, other.rows),
    first: pick(one.first, other.first, true),
    last: pick(one.last, other.last, false),
  };
}

function isSame(one: Evidence, other: Evidence): boolean {
  return one.rows === other.rows && one.first === other.first && one.last === other.last;
}
