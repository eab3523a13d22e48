import type { Archive } from "../../archive/archive.ts";
import type { Manifest, Segment } from "../../archive/manifest/manifest.ts";
import { joinAddress, knownSource } from "../../archive/sources.ts";
import { mostSegmentBytes, readSegment } from "../../archive/write/segment.ts";
import { RunvaultError } from "../../model/error.ts";
import { type Table, tables } from "../../model/profile/table.ts";
import type { RetryPolicy } from "../../model/retry/retry-policy.ts";
import type { HistorySource } from "../../model/source.ts";
import { formatTime } from "../../model/time.ts";
import { comparableLine } from "../../row/same-line.ts";
import { asked, routeOf } from "../plan/route.ts";
import { askSmall, linesIn, linesOf, timeOf } from "../plan/table-asks.ts";
import type { RunDescription } from "./run-description.ts";

export interface RunIdentity {
  readonly source: HistorySource;
  readonly archive: Archive;
  readonly run: RunDescription;
  readonly committed: Manifest;
  /** The operator's word that the source's address is another and the source the same. */
  readonly isMoved: boolean;
  /** True once rows of the run are to be fetched: then a source that tells no beginning shows a row that is known. */
  readonly isToFetch: boolean;
  readonly retry: RetryPolicy;
  readonly signal: AbortSignal;
}

/**
 * Throws `history_identity_conflict` where the source has another run under the id of an archived one: it began at
 * another time, or, where its address is another or it tells no beginning, its rows are others. An address that gave a
 * proven row is the source's from then on; one of a run of which nothing is proven has shown nothing, and is not.
 */
export async function requireSameRun(identity: RunIdentity): Promise<void> {
  const { source, archive, run, committed, isMoved, isToFetch } = identity;
  const before = toldBeginning(committed.run.started);
  const now = toldBeginning(run.started);
  if (before !== undefined && now !== undefined && before !== now) {
    throw conflict(
      identity,
      `the run archived under this id began at ${formatTime(before)}, but the gateway's run began at ${formatTime(now)}`,
      "What is archived stays as it is. Archive the gateway's run into another archive.",
    );
  }
  const isKnown =
    committed.source === source.label ||
    (await knownSource(archive, committed.source)).addresses.includes(source.label);
  if (isKnown && (before !== undefined || !isToFetch)) return;
  if (!isKnown && isMoved) {
    await joinAddress(archive, committed.source, source.label);
    return;
  }
  const hasRow = await hasProvenRow(identity);
  if (hasRow === false) {
    const what = isKnown ? "the gateway" : `${source.label}, another address than it was archived from,`;
    throw conflict(
      identity,
      `${what} does not have the first and last row of the run as proven`,
      "What is archived stays as it is. Archive the other run into another archive; if it is the same gateway at a new " +
        "address, say so once with --source-moved.",
    );
  }
  if (!isKnown && hasRow === true) await joinAddress(archive, committed.source, source.label);
}

/** When a run began; undefined where that is not told, or told as 0. */
function toldBeginning(started: string | bigint | null | undefined): bigint | undefined {
  return started == null || BigInt(started) === 0n ? undefined : BigInt(started);
}

/**
 * Whether the source has the first row that was proven of the run, or, where retention took that, the last, of any of its
 * tables; undefined where no row was ever proven. Throws what fails of a table, or is damaged, where nothing else tells.
 */
async function hasProvenRow(identity: RunIdentity): Promise<boolean | undefined> {
  const { archive, committed, signal } = identity;
  let isAnyProven = false;
  let failure: unknown;
  for (const table of tables) {
    const segments = (committed.tables[table.name]?.proven?.segments ?? []).filter(({ rows }) => rows > 0);
    for (const [segment, end] of [
      [segments[0], 0],
      [segments.at(-1), -1],
    ] as const) {
      if (segment === undefined) continue;
      try {
        const text = await readSegment(
          archive.store,
          archive.layout.committedKey(committed, "data", segment.file),
          segment,
        );
        const line = linesOf(text).at(end)?.toString("utf8");
        if (line !== undefined && (await gives(identity, table, segment, line))) return true;
      } catch (thrown) {
        signal.throwIfAborted();
        const { scope, code } = RunvaultError.from(thrown);
        if (scope !== "table" && code !== "archive_damaged") throw thrown;
        failure ??= thrown;
      }
    }
    // retention may have taken the whole table, and left another
    if (segments.length > 0) isAnyProven = true;
  }
  if (failure !== undefined) throw failure;
  return isAnyProven ? false : undefined;
}

/** Whether a line is among those that the source gives of its timestamp, whose rows take no more than a segment may. */
async function gives(
  { source, run, retry, signal }: RunIdentity,
  table: Table,
  segment: Segment,
  line: string,
): Promise<boolean> {
  const time = timeOf(line);
  if (time === null) return false;
  const { instanceId, runId, final } = run;
  const from = BigInt(time);
  const to = from + 1n < BigInt(segment.to) ? from + 1n : BigInt(segment.to);
  const asks = { source, run: { instanceId, runId, final }, table, retry, signal };
  const route = routeOf(source, table);
  // a number that was given here is no part of what the source has
  const comparable = (text: string) =>
    comparableLine(table, route.numbers === "given" ? text : text.replace(/"seq":"\d*"/, '"seq":"0"'));
  const wanted = comparable(line);
  return await askSmall(asks, async () => {
    const request = { ...asks.run, table: table.name, ...asked(route, from, to), signal };
    const mostBytes = route.bounds.from && route.bounds.to ? mostSegmentBytes : Number.POSITIVE_INFINITY;
    for await (const found of linesIn(source.rows(request), mostBytes)) {
      if (comparable(found.toString("utf8")) === wanted) return true;
    }
    return false;
  });
}

function conflict({ run }: RunIdentity, message: string, hint: string): RunvaultError {
  return new RunvaultError("history_identity_conflict", message, {
    scope: "run",
    place: { instance: run.instanceId, run: run.runId },
    hint,
  });
}
