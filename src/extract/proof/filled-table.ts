import type { TableManifest } from "../../archive/manifest/manifest.ts";
import { latestView } from "../../archive/manifest/table-view.ts";
import type { ScanRecord } from "../../archive/write/journal.ts";
import type { TableFacts } from "../../model/source.ts";
import { int64Max, int64Min, type Nanoseconds } from "../../model/time.ts";
import { isOutdated } from "../plan/committed-table.ts";
import { isRoundNumber } from "../plan/round-number.ts";
import { routeOf } from "../plan/route.ts";
import { isRefusal, type TableAsks } from "../plan/table-asks.ts";
import type { RunDescription } from "../run/run-description.ts";
import { showWholeEnds } from "./capped-end.ts";
import { withinReach } from "./far-side.ts";
import { grounds } from "./grounds.ts";
import { areBoundsSent, endsNotShown, requireNone, rowAround, rowsOutside, showEnds } from "./outer-ends.ts";
import { type Extent, type Rung, rungsAround } from "./rungs.ts";
import type { SeenSource } from "./seen-source.ts";

/** A table with rows, all of which are here as far as counts or two passes tell. */
export interface FilledTable {
  readonly asks: TableAsks;
  readonly run: RunDescription;
  readonly until: Nanoseconds | undefined;
  readonly extent: Extent;
  readonly isCounted: boolean;
  /** The rung on which the rows came, and nothing outside of their ends; undefined where there was none. */
  readonly rung: Rung | undefined;
  /** The one answer that had all of that, in rows and bytes; undefined where it took several. */
  readonly alone: { readonly rows: number; readonly bytes: number } | undefined;
  /** What the first pass left open about its last timestamps. */
  readonly openEnds: ScanRecord["openEnds"];
  /** First and last time of all that this job was sent, of a table that comes whole. */
  readonly seenExtent: Extent | undefined;
  readonly mostBytes: number;
  readonly seen: SeenSource;
}

/**
 * Shows that no rows lie outside of a table's extent and none are hidden in its last timestamp, and gives what shows it.
 * Throws `unverified` where nothing does, `incomplete` or `timestamp_capped` where rows turn up.
 */
export async function proveFilled(filled: FilledTable): Promise<readonly string[]> {
  const { asks, openEnds, mostBytes, seen } = filled;
  const restsOn: string[] = [];
  if (routeOf(asks.source, asks.table).bounds.from) {
    const rung = await emptyAround(filled);
    restsOn.push(grounds.emptyEnds(await withinReach(filled, rung)));
  } else {
    await requireNoneBeyond(filled);
    restsOn.push(grounds.cameWhole);
  }
  restsOn.push(...(await showWholeEnds(asks, openEnds, mostBytes, seen)));
  return [...new Set(restsOn)];
}

/**
 * Whether a cap may have ended the answer that brought all rows, and the counts as well: not where a larger one had nothing
 * around it, nor one as large where the rows go on to the ends of the run, nor where several as large had nothing. Round
 * numbers are what caps are made of: there it takes several.
 */
function mayBeCapped(
  { rows, bytes }: NonNullable<FilledTable["alone"]>,
  { asks, run, until, extent, seen }: FilledTable,
): boolean {
  const { name } = asks.table;
  if (seen.isRouteCapped(name)) return true;
  if (seen.isOftenWhole(name, rows, bytes)) return false;
  const size = seen.besideWhole(name, rows, bytes);
  if (size !== "as large" || isRoundNumber(rows)) return size === "larger" || isRoundNumber(rows);
  const [begin, end] = [run.started, until ?? run.ended];
  if (begin === undefined || end === undefined) return true;
  const near = (end - begin) / 20n;
  return extent.first > begin + near || extent.last < end - near;
}

/**
 * Requires that a table that comes whole came without rows ahead of its extent or behind it: they are left out where it is
 * fetched, for nobody asked for them. Throws `incomplete`.
 */
async function requireNoneBeyond({ asks, until, extent, seenExtent }: FilledTable): Promise<void> {
  const early = { from: int64Min, to: extent.first };
  const late = { from: extent.last + 1n, to: until ?? int64Max };
  if (seenExtent !== undefined) {
    if (seenExtent.first < early.to) throw rowsOutside({ from: seenExtent.first, to: early.to });
    if (seenExtent.last >= late.from && seenExtent.last < late.to)
      throw rowsOutside({ from: late.from, to: seenExtent.last + 1n });
    return;
  }
  // all of it came in an earlier job
  for (const window of [early, late]) {
    if (window.from < window.to) await requireNone(asks, window);
  }
}

/** A rung on which nothing lies outside of the extent; on that of the first pass only the empty ends are asked again. */
async function emptyAround(filled: FilledTable): Promise<Rung> {
  const { asks, run, until, extent, rung, alone, seen } = filled;
  const { name } = asks.table;
  if (rung !== undefined) {
    if (rung.stepNs === undefined && areBoundsSent(asks)) seen.countRung(rung.kind, extent.first - rung.from);
    if (alone !== undefined && !mayBeCapped(alone, filled)) return rung;
    try {
      const ends = await rowAround(asks, rung, extent);
      if (ends !== undefined && ends.row === undefined) {
        if (alone !== undefined) seen.shownWhole(name, alone.rows, alone.bytes);
        return rung;
      }
      if (alone !== undefined) seen.foundCap(name);
      throw rowsOutside(rung, ends?.row);
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
  }
  const shown = await showEnds(asks, rungsAround(run, until, extent, asks.source.now?.()), extent, seen);
  if (shown === undefined) throw endsNotShown();
  if (shown.outside !== undefined) throw rowsOutside(shown.rung, shown.outside);
  return shown.rung;
}

/**
 * What a counted table's former certificate rests on, where it still stands: the rows begin where they did, and the run
 * goes on as it did, or is finished as it was, of the same version and with as many rows. Its ends are not asked about
 * again then. Facts that changed may lag behind what has changed since; of a run that goes on, the slice up to its horizon
 * is asked for whatever they count.
 */
export function standingGrounds(
  former: TableManifest | undefined,
  own: TableFacts,
  run: RunDescription,
  until: Nanoseconds | undefined,
): readonly string[] {
  const restsOn = formerGrounds(former, own, until);
  const isSame = former?.proven?.certificate?.gatewayRows === own.rows.toString();
  return until !== undefined || (isSame && !isOutdated(latestView(former!), run)) ? restsOn : [];
}

/** The same whatever changed: what it rests on says nothing of rows that came since. */
export function formerGrounds(
  former: TableManifest | undefined,
  own: TableFacts,
  until: Nanoseconds | undefined,
): readonly string[] {
  const certificate = former?.proven?.certificate;
  if (certificate?.proof !== "counted" && certificate?.proof !== "hashed") return [];
  if ((certificate.gatewayFrom ?? certificate.first?.ts) !== own.first?.toString()) return [];
  return (certificate.until === null) === (until === undefined) ? certificate.restsOn : [];
}
