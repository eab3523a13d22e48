import type { Evidence } from "../../archive/manifest/evidence.ts";
import type { TableFacts } from "../../model/source.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { Window } from "../plan/held-window.ts";
import { type EvidenceRecord, isLess, needsHash, type RowsHere, windowOf } from "./evidence-record.ts";
import type { LookedAt } from "./window-rows.ts";

/** What was seen of a window, and what is here of it, which is less. */
export interface Lack {
  readonly seen: Evidence;
  readonly here: RowsHere;
}

/**
 * What is less here than was seen, up to the horizon of a run that goes on: of what lies behind it nothing is said yet.
 * `version` is the run's by now.
 */
export async function lacking(
  record: EvidenceRecord,
  here: LookedAt,
  until: Nanoseconds | undefined,
  version: string | null,
): Promise<Lack[]> {
  const lacks: Lack[] = [];
  for (const seen of record.items) {
    const window = judgedWindow(seen, until);
    if (window === undefined) continue;
    const found = await here.within(window, seen.first !== null || seen.last !== null);
    if (isLess(found, seen)) lacks.push({ seen, here: found });
    else if (needsHash(found, seen, version) && (await here.hashWithin(window)) !== seen.hash)
      lacks.push({ seen, here: found });
  }
  return lacks;
}

/** The window in which rows are to be here; undefined where some of what was seen may lie behind the horizon. */
function judgedWindow(seen: Evidence, until: Nanoseconds | undefined): Window | undefined {
  const window = windowOf(seen);
  if (until === undefined || window.to <= until) return window;
  return seen.last !== null && BigInt(seen.last) < until ? { from: window.from, to: until } : undefined;
}

/**
 * A table's facts with what was told of it before, where that was more: an answer of less may be that of a node that lags.
 * What was told from an earlier beginning on does not count here: rows ahead may have been dropped since.
 */
export function atLeast(own: TableFacts, record: EvidenceRecord, until: Nanoseconds | undefined): TableFacts {
  let { rows, last } = own;
  for (const seen of record.items) {
    if (seen.by !== "told" || seen.isOlder || judgedWindow(seen, until) === undefined) continue;
    if (seen.first === null || seen.last === null) continue;
    if (own.first === undefined || BigInt(seen.first) < own.first) continue;
    if (BigInt(seen.rows) > rows) rows = BigInt(seen.rows);
    if (last === undefined || BigInt(seen.last) > last) last = BigInt(seen.last);
  }
  return { ...own, rows, last };
}
