import { z } from "zod";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { latestView } from "../../archive/manifest/table-view.ts";
import type { HeldTables } from "../../archive/write/held-tables.ts";
import type { ScanRecord } from "../../archive/write/journal.ts";
import { RunvaultError } from "../../model/error.ts";
import { type TableName, tableNamed, tableNames } from "../../model/profile/table.ts";
import type { StorageFacts } from "../../model/source.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { openWindow } from "../plan/full-scan.ts";
import { routeOf } from "../plan/route.ts";
import { isRefusal, jsonOf, probe, type TableAsks } from "../plan/table-asks.ts";
import type { RunDescription } from "../run/run-description.ts";
import { showWholeEnds } from "./capped-end.ts";
import { grounds } from "./grounds.ts";
import { firstTaken, showEnds } from "./outer-ends.ts";
import { type Extent, piecesOf, type Rung, rungsAround } from "./rungs.ts";
import type { SeenSource } from "./seen-source.ts";

/** What an empty answer is compared with. */
export interface EmptyTable {
  readonly asks: TableAsks;
  readonly run: RunDescription;
  readonly until: Nanoseconds | undefined;
  /** True if storage facts count no rows; false if there are no facts. */
  readonly isCounted: boolean;
  /** The grounds of a former proof by counts, which stands if no bounds can be tried any more. */
  readonly before: readonly string[];
  /** Extents of the run's tables that have rows. */
  readonly filled: ReadonlyMap<TableName, FilledExtent>;
  readonly seen: SeenSource;
  /** What the pass over the table left open: rows came outside its bounds, and a cap may have cut off those within. */
  readonly openEnds: ScanRecord["openEnds"];
  readonly mostBytes: number;
  /** The run's summary; null if the source has none. */
  readonly summary: () => Promise<Uint8Array | null>;
}

/** The extent of a table that has rows. */
export interface FilledExtent extends Extent {
  /** True if the source counted or returned the rows in this job; false if only the archive has them. */
  readonly isShown: boolean;
}

/** The proof that a table has no rows, or a rung that has some after all. */
export type EmptyProof = { readonly restsOn: readonly string[] } | { readonly rowsOn: Rung };

/**
 * Shows that a table without rows has none: nothing within bounds that returned known rows of other tables or runs,
 * nothing in the summary, and storage facts that count none. Without facts, the route must have returned rows of some
 * run, and the gateway must know the run: many return nothing for any id. Otherwise it takes the operator's word. Call
 * it after the tables that have rows, which show the bounds. Throws `unverified`.
 */
export async function proveEmpty(empty: EmptyTable): Promise<EmptyProof> {
  const { asks, run, until, isCounted, before, filled, seen, openEnds, mostBytes } = empty;
  const name = asks.table.name;
  const comesWhole = !routeOf(asks.source, asks.table).bounds.from;
  if (comesWhole && (await probe(asks, openWindow(until))) !== undefined)
    return { rowsOn: { kind: "wide", ...openWindow(until), stepNs: undefined } };
  const rungs = comesWhole ? [] : await countedRungs(empty);
  // facts that count no row in the whole run do not depend on bounds, and there is no row to try bounds with
  const isAllEmpty = isCounted && filled.size === 0;
  const isShown = rungs.length > 0 || isAllEmpty || comesWhole;
  // if no bounds have returned rows, empty answers prove nothing, but a row on any of them is proof to the contrary
  const tried = rungs.length > 0 ? [rungs] : comesWhole ? [] : nearNothing(empty).map((rung) => [rung]);
  let nothing: Rung | undefined;
  for (const rungs of tried) {
    const taken = await firstTaken(asks, rungs, seen);
    if (taken?.isFilled) return { rowsOn: taken.rung };
    nothing ??= isShown ? taken?.rung : undefined;
  }
  // bounds far around the run may mean something else than those within it
  const within = isCounted || comesWhole ? [] : rungsWithin(run, until);
  if ((await firstTaken(asks, within, seen))?.isFilled) return { rowsOn: within[0]! };
  const isStanding = nothing === undefined && isCounted && before.length > 0;
  const lacks =
    (await contradiction(empty)) ??
    (nothing === undefined && !isStanding && !comesWhole
      ? "no time bounds that are wide enough have returned known rows"
      : undefined) ??
    (isCounted ? undefined : (noContent(empty) ?? (await unknownTo(empty))));
  const shown = comesWhole ? [grounds.noRowsWhole] : nothing === undefined ? [] : [grounds.noRows(nothing)];
  const isSaidEmpty = seen.isSaidEmpty(run.instanceId, name);
  if (lacks === undefined && !(isSaidEmpty && openEnds.length > 0)) {
    if (isStanding) return { restsOn: before };
    if (isAllEmpty) return { restsOn: [grounds.countedNoneInRun] };
    const known = isCounted ? grounds.countedNone : grounds.routeGaveRows;
    return { restsOn: [...shown, known, ...(await showWholeEnds(asks, openEnds, mostBytes, seen))] };
  }
  if (isSaidEmpty) {
    return { restsOn: [...shown, grounds.saidEmpty(name)] };
  }
  throw new RunvaultError(
    "unverified",
    `the gateway returns no rows, but nothing proves that there are none: ${lacks}`,
    {
      hint: `If the table should have no rows, run again with --empty ${name}; the archive remembers it for the instance.`,
    },
  );
}

/** Extents of the tables that have rows, from facts, full scans and the committed manifest. */
export function filledTables(
  facts: StorageFacts | null,
  held: HeldTables,
  committed: Manifest["tables"],
): ReadonlyMap<TableName, FilledExtent> {
  const filled = new Map<TableName, FilledExtent>();
  for (const name of tableNames) {
    const own = facts?.get(name);
    const { fullScan } = held.of(name);
    const { first: former, last: formerLast } = latestView(committed[name])?.certificate ?? {};
    const { first, last } = (facts === null ? fullScan : own) ?? {};
    if (first != null && last != null) {
      filled.set(name, { first: BigInt(first), last: BigInt(last), isShown: true });
    } else if (former != null && formerLast != null) {
      filled.set(name, { first: BigInt(former.ts), last: BigInt(formerLast.ts), isShown: false });
    }
  }
  return filled;
}

/** A rung with the run's own times; none if they are not known. */
function rungsWithin({ started, ended }: RunDescription, until: Nanoseconds | undefined): Rung[] {
  const to = until ?? (ended === undefined ? undefined : ended + 1n);
  if (started === undefined || to === undefined || started >= to) return [];
  return [{ kind: "run", from: started, to, stepNs: undefined }];
}

/** The rungs around the run that returned known rows. If none has so far, other tables of the run are tried. */
async function countedRungs(empty: EmptyTable): Promise<Rung[]> {
  const { asks, run, until, filled, seen } = empty;
  const counted = () => aroundNothing(empty).filter(({ kind }) => seen.reachOf(kind) !== undefined);
  // two tables, in case the route of one is dead
  for (const [name, extent] of [...filled].filter(([name]) => name !== asks.table.name).slice(0, 2)) {
    if (counted().length > 0) break;
    const other = { ...asks, table: tableNamed(name) };
    try {
      await showEnds(other, rungsAround(run, until, extent, asks.source.now?.()), extent, seen);
    } catch (error) {
      asks.signal.throwIfAborted();
      // a failure of another table is reported for that one
      if (RunvaultError.from(error).scope !== "table") throw error;
    }
  }
  return counted();
}

/** The rungs to try if none of them has returned rows; days one by one only if they are few. */
function nearNothing(empty: EmptyTable): Rung[] {
  const isFew = (rung: Rung) => (piecesOf(rung, rung.stepNs)?.length ?? mostDays + 1) <= mostDays;
  return aroundNothing(empty).filter(isFew);
}

const mostDays = 10;

/** Rungs around everything that is known about the run. */
function aroundNothing({ asks, run, until, filled }: EmptyTable): Rung[] {
  const now = asks.source.now?.();
  const firsts = [...filled.values()].map(({ first }) => first);
  const lasts = [...filled.values()].map(({ last }) => last);
  if (firsts.length === 0) return rungsAround(run, until, undefined, now);
  const first = firsts.reduce((a, b) => (a < b ? a : b));
  const last = lasts.reduce((a, b) => (a > b ? a : b));
  return rungsAround(run, until, { first, last }, now);
}

const count = z.union([z.string().regex(/^\d{1,20}$/), z.int().nonnegative()]);
const summarySchema = z.object({ orders: count.optional(), fills: count.optional() });

/** How the summary contradicts an empty table; undefined if it does not. */
async function contradiction({ asks, until, summary }: EmptyTable): Promise<string | undefined> {
  const { name } = asks.table;
  if (name !== "orders" && name !== "fills") return undefined;
  const rows = countedBySummary(await summary(), name);
  if (rows === 0n) return undefined;
  // for a growing run, the summary may count rows after the horizon
  if (until !== undefined && (await isAnyBehind(asks, until))) return undefined;
  return `the run's summary counts ${rows} ${name}`;
}

/** The number of fills, or of orders (with at least one row each), in a run's summary; 0 if it does not say. */
export function countedBySummary(document: Uint8Array | null, name: "fills" | "orders"): bigint {
  return BigInt(summarySchema.safeParse(document === null ? null : jsonOf(document)).data?.[name] ?? 0);
}

async function isAnyBehind(asks: TableAsks, until: Nanoseconds): Promise<boolean> {
  for (const rung of rungsAround({ started: until, ended: undefined }, undefined, undefined)) {
    try {
      if ((await probe(asks, { from: until, to: rung.to })) !== undefined) return true;
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
  }
  return false;
}

/** Why 204 No Content does not show an empty table; undefined if it did not come, or also comes for empty windows. */
function noContent({ asks: { source, run, table } }: EmptyTable): string | undefined {
  return source.isNoContentUnclear?.(run, table.name) === true
    ? "its route answers 204 No Content, which tables that have rows never do"
    : undefined;
}

/** Why a source's empty answer may not be about this table of this run; undefined if it is. */
async function unknownTo({ asks, filled, seen, run, until }: EmptyTable): Promise<string | undefined> {
  const { name } = asks.table;
  if (!seen.gaveRows(name)) return "its route has not returned rows of any run yet";
  for (const [other, { first, isShown }] of filled) {
    if (isShown || (await isGiven({ ...asks, table: tableNamed(other) }, first))) return undefined;
  }
  if (filled.size > 0) return "rows of other tables that the gateway returned before are gone, too";
  const made = { ...run, runId: madeUpId(run.runId) };
  const rungs = rungsAround(run, until, undefined, asks.source.now?.());
  if (made.runId === run.runId || rungs.length === 0) return "no other table of the run has rows";
  for (const rung of rungs) {
    try {
      await probe({ ...asks, run: made }, rung);
      break;
    } catch (error) {
      if (isUnknown(error)) return undefined;
      // refused bounds say nothing about the run
      if (!isRefusal(error)) throw error;
    }
  }
  return "no other table of the run has rows, and the gateway answers the same for a run that cannot exist";
}

/** Whether a source still returns a row that the archive has. */
async function isGiven(asks: TableAsks, ts: Nanoseconds): Promise<boolean> {
  try {
    return (await probe(asks, { from: ts, to: ts + 1n })) !== undefined;
  } catch (error) {
    asks.signal.throwIfAborted();
    // a failure of another table is reported for that one
    if (RunvaultError.from(error).scope !== "table") throw error;
    return false;
  }
}

/** How a source reports an unknown run. */
function isUnknown(error: unknown): boolean {
  if (!(error instanceof RunvaultError) || error.retry === "again") return false;
  // only if the gateway reports it, not if runvault found it in an answer
  if (error.code === "history_identity_conflict") return error.status !== undefined;
  const isAboutUs = error.code === "unauthenticated" || error.code === "permission_denied";
  return error.isGateways && !isAboutUs && error.code !== "not_a_gateway" && !isRefusal(error);
}

/**
 * An id of the same form that names no run: its first digit is changed, which puts dates and times far in the future,
 * and so are its letters. The same id if it has neither.
 */
export function madeUpId(runId: string): string {
  // hexadecimal letters of UUIDs and hashes stay hexadecimal
  const isHex = !/[g-z]/i.test(runId);
  const [size, shift] = isHex ? [6, 3] : [26, 13];
  return runId
    .replace(/\d/, (digit) => String((Number(digit) + 5) % 10))
    .replace(/[a-z]/gi, (letter) => {
      const base = letter < "a" ? 65 : 97;
      return String.fromCharCode(((letter.charCodeAt(0) - base + shift) % size) + base);
    });
}
