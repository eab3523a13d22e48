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

/** A table whose rows are all here, according to counts or two passes. */
export interface FilledTable {
  readonly asks: TableAsks;
  readonly run: RunDescription;
  readonly until: Nanoseconds | undefined;
  readonly extent: Extent;
  readonly isCounted: boolean;
  /** The rung on which the rows came with nothing outside their ends; undefined if there was none. */
  readonly rung: Rung | undefined;
  /** Rows and bytes of the single answer that had all of them; undefined if it took several. */
  readonly alone: { readonly rows: number; readonly bytes: number } | undefined;
  /** The last timestamps that the first pass could not show to be whole. */
  readonly openEnds: ScanRecord["openEnds"];
  /** First and last time of all rows sent in this job, for a table that always comes whole. */
  readonly seenExtent: Extent | undefined;
  readonly mostBytes: number;
  readonly seen: SeenSource;
}

/**
 * Shows that no rows lie outside a table's extent and none are hidden in its last timestamp, and returns the grounds.
 * Throws `unverified` if nothing shows it, `incomplete` or `timestamp_capped` if rows turn up.
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
 * Whether a cap may have ended the answer with all rows, and the counts, too. Not if a larger answer had nothing around
 * it, nor if one as large had nothing and the rows reach the ends of the run, nor if several as large had. Caps are
 * usually round numbers: for those it takes several.
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
 * Requires that a table that always comes whole came without rows before or after its extent: fetching leaves these
 * out, because they were not requested. Throws `incomplete`.
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
  // all rows came in an earlier job
  for (const window of [early, late]) {
    if (window.from < window.to) await requireNone(asks, window);
  }
}

/** A rung with nothing outside the extent; on the first pass's rung, only the empty ends are requested again. */
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
 * The grounds of a counted table's former certificate, if it still stands: the rows begin where they did, and the run
 * still goes on, or is finished as before, with the same version and as many rows. Then its ends are not requested
 * again. Facts that have changed may lag behind newer changes; for a growing run, the slice up to its horizon is
 * requested whatever they count.
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

/** The same whatever has changed: its grounds say nothing about rows that came since. */
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
