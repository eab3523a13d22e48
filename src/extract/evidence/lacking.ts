import type { Evidence } from "../../archive/manifest/evidence.ts";
import type { TableFacts } from "../../model/source.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { type EvidenceRecord, isLess, needsHash, type RowsHere, windowOf } from "./evidence-record.ts";
import type { LookedAt } from "./window-rows.ts";

/** Evidence of a window, and the smaller number of rows here. */
export interface Lack {
  readonly seen: Evidence;
  readonly here: RowsHere;
}

/**
 * The windows with less here than was seen, up to a growing run's horizon: later rows do not count yet. `version` is
 * the run's current one.
 */
export async function lacking(
  record: EvidenceRecord,
  here: LookedAt,
  until: Nanoseconds | undefined,
  version: string | null,
): Promise<Lack[]> {
  const lacks: Lack[] = [];
  for (const seen of record.items) {
    const judged = upTo(seen, until);
    if (judged === undefined) continue;
    const window = windowOf(judged);
    const found = await here.within(window, judged.first !== null || judged.last !== null);
    if (isLess(found, judged)) lacks.push({ seen, here: found });
    else if (needsHash(found, judged, version) && (await here.hashWithin(window)) !== judged.hash)
      lacks.push({ seen, here: found });
    else if (!(await areEndsHere(judged, here))) lacks.push({ seen, here: found });
  }
  return lacks;
}

/** Whether the first and last of the rows seen are here, as far as they are known. */
async function areEndsHere({ first, firstKey, last, lastKey }: Evidence, here: LookedAt): Promise<boolean> {
  for (const [ts, key] of [
    [first, firstKey],
    [last, lastKey],
  ] as const)
    if (ts != null && key !== undefined && !(await here.has(BigInt(ts), key))) return false;
  return true;
}

/** Evidence up to the horizon: for a window with later rows, only its first row; undefined if that is later, too. */
function upTo(seen: Evidence, until: Nanoseconds | undefined): Evidence | undefined {
  if (until === undefined || BigInt(seen.to) <= until) return seen;
  const to = until.toString();
  if (seen.last !== null && BigInt(seen.last) < until) return { ...seen, to };
  const isBegun = seen.first !== null && BigInt(seen.first) < until;
  return isBegun ? { ...seen, to, rows: 1, last: null, hash: null } : undefined;
}

/**
 * A table's facts, replaced by earlier larger counts: a smaller answer may come from a lagging node. Counts from an
 * earlier beginning do not apply, because the gateway may have dropped its oldest rows since.
 */
export function atLeast(own: TableFacts, record: EvidenceRecord, until: Nanoseconds | undefined): TableFacts {
  let { rows, last } = own;
  for (const seen of record.items) {
    if (seen.by !== "told" || seen.isOlder || seen.first === null || seen.last === null) continue;
    if (until !== undefined && BigInt(seen.last) >= until) continue;
    if (own.first === undefined || BigInt(seen.first) < own.first) continue;
    if (BigInt(seen.rows) > rows) rows = BigInt(seen.rows);
    if (last === undefined || BigInt(seen.last) > last) last = BigInt(seen.last);
  }
  return { ...own, rows, last };
}
