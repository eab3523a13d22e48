import {
  type Certificate,
  type Holding,
  type Manifest,
  type Proven,
  runState,
  type TableManifest,
  type Through,
  tableState,
} from "../../archive/manifest/manifest.ts";
import { holdingsOf } from "../../archive/manifest/table-view.ts";
import { holdsRemaps, type RunJournal, removeWork } from "../../archive/write/run-journal.ts";
import type { OpenDuckDB } from "../../duckdb/open-duckdb.ts";
import { rowHashWithin } from "../../duckdb/row-hash-within.ts";
import { Disposables } from "../../model/disposables.ts";
import { RunvaultError } from "../../model/error.ts";
import { identityMap, isIdentityMap } from "../../model/profile/identity-map.ts";
import { type RowMap, rowMapFingerprint } from "../../model/profile/row-map.ts";
import { type TableName, tableNamed, tableNames } from "../../model/profile/table.ts";
import { isoOf } from "../../model/time.ts";
import type { BucketConverter } from "../fetch/bucket-converter.ts";
import { lockCommitted, openRebuild, type RunRebuild } from "./open-rebuild.ts";
import type { RebuildOutcome } from "./rebuild-run.ts";
import { refuseUnsureRemap } from "./remap-refusals.ts";
import { grainOf, type RemappedFiles, writeRemapped } from "./remap-table.ts";
import { RemappedLines } from "./remapped-lines.ts";

/** The parts of a profile that matter for stored rows. */
export interface AppliedProfile {
  readonly name: string;
  /** The tables that it describes; others stay as they are. */
  readonly described: readonly TableName[];
  readonly maps: Readonly<Partial<Record<TableName, RowMap>>>;
  /** Tables whose routes take no time bounds; a new archive would have them in one bucket. */
  readonly whole: readonly TableName[];
}

/** A table whose rows are converted to another map. */
interface Remapped {
  readonly name: TableName;
  readonly table: TableManifest;
  readonly from: RowMap;
  readonly to: RowMap;
}

/**
 * Converts a run's rows to another profile without fetching: each is turned back into the gateway's form with the old
 * map and read with the new one. Rows set aside are tried again. What was proven about the rows stays proven. A new
 * archive made with the profile would hold the same. After an interruption it starts over; until the commit, everything
 * stays as it was.
 *
 * Throws as `rebuildRun` does, and `invalid_argument` if the stored rows do not say enough: then nothing has changed,
 * and nothing is left of the attempt.
 */
export async function rebuildByProfile(job: RunRebuild, profile: AppliedProfile): Promise<RebuildOutcome> {
  for (const name of job.tables ?? []) {
    if (!profile.described.includes(name)) throw notDescribed(name, profile);
  }
  await using locked = await lockCommitted(job);
  const { committed } = locked;
  const names = tableNames.filter((name) => job.tables === undefined || job.tables.includes(name));
  const remapped = names.flatMap((name) => remappedOf(committed, name, profile));
  const unchanged = { manifest: committed, changed: false, buckets: 0, resumedBuckets: 0, rows: 0 };
  if (remapped.length === 0) {
    const { archive, run } = job;
    if (await holdsRemaps(archive.layout, run)) await removeWork(archive.layout, run);
    return unchanged;
  }
  for (const { name, table, from, to } of remapped) refuseUnsureRemap(committed, name, table, from, to);
  const rows = remapped.reduce((sum, { table }) => sum + rowsOf(holdingsOf(table)), 0);
  // text, sorted text, segments and Parquet
  const text = remapped.flatMap(({ table }) => holdingsOf(table).flatMap(({ segments }) => segments));
  const neededBytes = text.reduce((sum, { bytes, storedBytes }) => sum + bytes + 3 * storedBytes, 0);
  await using rebuild = await openRebuild(job, locked, { badLines: "aside", neededBytes, remaps: true });
  const { journal, converter, duckdb, exactTypes } = rebuild;
  job.onPlan?.(rows);
  for (const _ of remapped) job.onConversion?.("planned");
  const at = isoOf(job.clock());
  const means = { journal, converter, duckdb, signal: job.signal, final: committed.run.final, at };
  const tables: Manifest["tables"] = { ...committed.tables };
  let buckets = 0;
  for (const one of remapped) {
    const through = throughOf(one, profile);
    await journal.setThrough(one.name, through);
    const made = await remapTable(one, profile, through, exactTypes(one.name), means);
    tables[one.name] = made;
    for (const { parquet } of holdingsOf(made)) buckets += parquet.length;
    const bytes = holdingsOf(one.table).flatMap(({ parquet }) => parquet);
    job.onRows?.(
      rowsOf(holdingsOf(one.table)),
      bytes.reduce((sum, { storedBytes }) => sum + storedBytes, 0),
    );
    job.onConversion?.("done");
  }
  const state = runState(Object.values(tables).map(({ state }) => state));
  const manifest = await rebuild.commit({ tables, state });
  return { manifest, changed: true, buckets, resumedBuckets: 0, rows };
}

function notDescribed(table: TableName, { name, described }: AppliedProfile): RunvaultError {
  return new RunvaultError("invalid_argument", `the profile ${name} does not describe ${table}`, {
    place: { table },
    hint: `It describes ${described.join(", ")}: remove ${table} from --tables, or add it to the profile.`,
  });
}

function remappedOf({ tables }: Manifest, name: TableName, profile: AppliedProfile): Remapped[] {
  const table = tables[name];
  if (table === undefined || !profile.described.includes(name)) return [];
  const holdings = holdingsOf(table).filter((holding) => rowsOf([holding]) > 0);
  const identity = identityMap(tableNamed(name));
  const to = profile.maps[name] ?? identity;
  const froms = holdings.map(({ through }) => through?.map ?? identity);
  const [from] = froms;
  if (from === undefined || froms.every((one) => isSame(one, to))) return [];
  return [{ name, table, from, to }];
}

function isSame(from: RowMap, to: RowMap): boolean {
  if (isIdentityMap(from) && isIdentityMap(to)) return true;
  return rowMapFingerprint(from) === rowMapFingerprint(to);
}

function throughOf({ table, to }: Remapped, { name }: AppliedProfile): Through {
  const [before] = holdingsOf(table);
  const map = isIdentityMap(to) ? {} : { map: to, fingerprint: rowMapFingerprint(to) };
  // how the rows were fetched does not change
  return { profile: name, ...map, notes: [...(before?.through?.notes ?? [])] };
}

interface Means {
  readonly journal: RunJournal;
  readonly converter: BucketConverter;
  readonly duckdb: OpenDuckDB;
  readonly signal: AbortSignal;
  readonly final: boolean;
  readonly at: string;
}

async function remapTable(
  one: Remapped,
  profile: AppliedProfile,
  through: Through,
  exactTypes: Holding["exactTypes"],
  means: Means,
): Promise<TableManifest> {
  const { journal, converter, duckdb, signal, final, at } = means;
  const table = tableNamed(one.name);
  const { proven, attempt } = one.table;
  await using opened = new Disposables();
  const sides: { readonly holding: Holding; readonly lines: RemappedLines }[] = [];
  for (const holding of holdingsOf(one.table)) {
    const from = holding.through?.map ?? identityMap(table);
    const lines = await RemappedLines.make(journal, duckdb, { table, from, to: one.to }, holding, signal);
    sides.push({ holding, lines: opened.use(lines) });
  }
  const lines = sides.map((side) => side.lines);
  const grain = profile.whole.includes(one.name) ? "all" : grainOf(lines, final, one.table.grain);
  journal.held.of(one.name).grain = grain;
  const made = new Map<Holding, Holding>();
  for (const { holding, lines } of sides) {
    const window = windowOf(holding, lines);
    const files = await writeRemapped(journal, converter, table, lines, {
      ...{ grain, window, map: one.to, signal },
    });
    const certificate = await certificateOf(one, through, holding, files, means);
    made.set(holding, { ...holding, certificate, through, exactTypes: { ...exactTypes }, ...files });
  }
  return settled(one.table, grain, {
    proven: proven === null ? null : { ...proven, ...made.get(proven) },
    beside: attempt.holding === null ? null : made.get(attempt.holding)!,
    at,
  });
}

/** The window that the rows cover: from their first time to the horizon, or to their last. */
function windowOf({ certificate, segments }: Holding, { extent }: RemappedLines) {
  const [segment] = segments;
  // if none of them is a row any more, the window stays as it was
  const first = extent?.first ?? BigInt(segment?.from ?? 0);
  const last = extent?.last ?? first;
  return { from: first, to: certificate?.until == null ? last + 1n : BigInt(certificate.until) };
}

async function certificateOf(
  { name }: Remapped,
  through: Through,
  { certificate, through: before, quarantine }: Holding,
  files: RemappedFiles,
  { journal, duckdb }: Means,
): Promise<Certificate | null> {
  if (certificate === null) return null;
  const quarantined = files.quarantine.reduce((sum, { rows }) => sum + rows, 0);
  const hash = certificate.rowHash === null ? null : await hashOf(name, files, journal, duckdb);
  const aside = new Set(await journal.rowsAside(quarantine));
  const isAccepted = (await journal.rowsAside(files.quarantine)).every((row) => aside.has(row));
  const from = before === undefined ? "the contract" : `the profile ${before.profile} as it was`;
  const note = `rows that came by ${from}, converted to the profile ${through.profile} without fetching`;
  return {
    ...certificate,
    // the gateway's checksum was of the old lines
    proof: certificate.proof === "hashed" ? "counted" : certificate.proof,
    rows: files.segments.reduce((sum, { rows }) => sum + rows, 0),
    quarantined,
    quarantineAccepted: certificate.quarantineAccepted && quarantined > 0 && isAccepted,
    first: files.parquet[0]?.first ?? null,
    last: files.parquet.at(-1)?.last ?? null,
    rowHash: hash,
    restsOn: [...certificate.restsOn.filter((ground) => !ground.startsWith("rows that came by ")), note],
  };
}

async function hashOf(
  name: TableName,
  { parquet }: RemappedFiles,
  journal: RunJournal,
  duckdb: OpenDuckDB,
): Promise<Certificate["rowHash"]> {
  const files = await Promise.all(parquet.map((file) => journal.locateWhole(file)));
  const { rows, hash } = await rowHashWithin(duckdb.connection, tableNamed(name), files);
  return { rows: rows.toString(), sum: hash.toString() };
}

/** The state and the latest attempt's outcome, now that different rows may be set aside. */
function settled(
  table: TableManifest,
  grain: TableManifest["grain"],
  now: {
    readonly proven: TableManifest["proven"];
    readonly beside: Holding | null;
    readonly at: string;
  },
): TableManifest {
  const { accepted: _, ...before } = table;
  const isWhole = ({ certificate }: Holding) =>
    certificate === null || certificate.quarantined === 0 || certificate.quarantineAccepted;
  const latest = now.beside ?? now.proven;
  const isProven = now.proven !== null && isWhole(now.proven);
  const { outcome } = table.attempt;
  // it failed for a reason that converting rows does not remove, such as an unreachable gateway
  if (now.beside === null && isProven && outcome !== "ok" && outcome !== "QUARANTINED") {
    return { ...table, grain, proven: now.proven };
  }
  if (latest === null || isWhole(latest)) {
    const proven = now.beside === null ? now.proven : { ...now.beside, state: stateOf(now.beside) };
    const attempt = {
      ...table.attempt,
      outcome: "ok" as const,
      behindSince: null,
      error: null,
      holding: null,
    };
    return { ...before, grain, proven, attempt, state: tableState({ proven, attempt }) };
  }
  const attempt = {
    ...table.attempt,
    outcome: "QUARANTINED" as const,
    behindSince: table.attempt.behindSince ?? now.at,
    holding: holdingOnly(latest),
  };
  const proven = isProven && now.beside !== null ? now.proven : null;
  return { ...before, grain, proven, attempt, state: tableState({ proven, attempt }) };
}

function stateOf({ certificate }: Holding): Proven["state"] {
  if (certificate === null) return "ABSENT";
  return certificate.until === null ? "COMPLETE" : "OPEN";
}

/** A holding without its state. */
function holdingOnly(holding: Holding & { readonly state?: string }): Holding {
  const { state: _, ...rest } = holding;
  return rest;
}

/** The number of rows, including those set aside. */
function rowsOf(holdings: readonly Holding[]): number {
  return holdings
    .flatMap(({ segments, quarantine }) => [...segments, ...quarantine])
    .reduce((sum, { rows }) => sum + rows, 0);
}
