import { evidenceOf } from "../../archive/manifest/evidence.ts";
import type { Segment } from "../../archive/manifest/manifest.ts";
import { latestView } from "../../archive/manifest/table-view.ts";
import { RunvaultError } from "../../model/error.ts";
import type { Table } from "../../model/profile/table.ts";
import { WindowRows } from "../evidence/window-rows.ts";
import { provenSegments } from "../plan/committed-table.ts";
import { windowKey } from "../plan/held-window.ts";
import { routeOf } from "../plan/route.ts";
import type { RunContext } from "./run-context.ts";

/**
 * Drops segments. Their rows did come, so what replaces them must not be less. `isAnyKind`: any rows may replace them,
 * because they change each time.
 */
export async function letGoSegments(
  table: Table,
  context: RunContext,
  segments: readonly Segment[],
  isAnyKind = false,
): Promise<void> {
  await learnSegments(table, context, segments, isAnyKind);
  await context.journal.dropSegments(table.name, segments);
}

/** Records rows that came as evidence; not proven ones, which `shrunk` guards. */
export async function learnSegments(
  table: Table,
  context: RunContext,
  segments: readonly Segment[],
  isAnyKind = false,
): Promise<void> {
  const { journal, evidence, committed, acceptShrink, work } = context;
  const { name } = table;
  const isProven = provenSegments(committed[name]);
  const unproven = acceptShrink ? [] : segments.filter((segment) => !isProven(segment));
  const ofCommitted = latestView(committed[name])?.storageVersion ?? null;
  const read = (segment: Segment) => journal.textOf(segment);
  const isKeyed = routeOf(work.source, table).numbers === "given";
  const here = new WindowRows(table, journal.held.of(name), read, isKeyed, noEnds);
  for (const isFormer of [true, false]) {
    const some = unproven.filter(({ file }) => journal.held.isCommitted(file) === isFormer);
    const version = isFormer ? ofCommitted : evidence.versionHere;
    for (const segments of Map.groupBy(some, windowKey).values()) {
      const found = await readable(() => here.ofSegments(segments));
      // even if the rows cannot be read any more, their number is known
      if (found === null) evidence.of(name).learn(evidenceOf(segments, version));
      for (const { from, to, distinct, first, last, firstKey, lastKey, hash } of found ?? []) {
        if (first === undefined || last === undefined) continue;
        // if they are of any kind, other keys may come
        const keys = isAnyKind ? {} : { firstKey, lastKey };
        evidence.of(name).learn({
          by: "brought",
          from: from.toString(),
          to: to.toString(),
          rows: distinct,
          first: first.toString(),
          last: last.toString(),
          ...keys,
          hash: isAnyKind ? null : hash,
          version,
        });
      }
    }
  }
}

function noEnds() {
  return { first: undefined, last: undefined };
}

/** Reads files; null if they are damaged, which is reported where they are needed. */
async function readable<T>(read: () => Promise<T[]>): Promise<T[] | null> {
  try {
    return await read();
  } catch (thrown) {
    if (RunvaultError.from(thrown).code !== "archive_damaged") throw thrown;
    return null;
  }
}
