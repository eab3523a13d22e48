import type { Archive } from "../archive/archive.ts";
import type { Manifest, TableManifest } from "../archive/manifest.ts";
import type { HeldTable } from "../archive/pending.ts";
import type { HistorySource, RunRef } from "../model/source.ts";
import { type Table, type TableName, tables } from "../model/table.ts";
import type { Nanoseconds } from "../model/time.ts";
import { diskBytes, freeBytes, textBytes } from "./disk-need.ts";
import { changedWindows, grainOf, heldWindows, planSlices } from "./plan.ts";
import { describeRun } from "./run-knowledge.ts";
import { isOutdated, isUpToDate, lookAhead, type RunOutlook } from "./run-outlook.ts";

/** What archiving a run would do. */
export interface RunPlan extends RunRef {
  readonly status: string;
  readonly upToDate: boolean;
  readonly horizon: Nanoseconds | undefined;
  readonly tables: readonly TablePlan[];
  /** Free bytes on the archive's disk. */
  readonly freeBytes: number;
}

export interface TablePlan {
  readonly table: TableName;
  readonly absent: boolean;
  /** Rows to fetch, their text and what they take on disk; null where the gateway has no storage facts. */
  readonly rows: number | null;
  readonly slices: number | null;
  readonly textBytes: number | null;
  readonly diskBytes: number | null;
}

/** Plans a run without fetching or writing anything. `archive` is null where it does not exist yet. */
export async function planRun(input: {
  source: HistorySource;
  archive: Archive | null;
  folder: string;
  run: RunRef;
  tables: readonly TableName[] | undefined;
  sliceRows: number;
  settled: Nanoseconds;
  requireCounted: boolean;
  fingerprint: boolean;
  signal: AbortSignal;
}): Promise<RunPlan> {
  const { source, archive, folder, signal } = input;
  const wanted = tables.filter(({ name }) => input.tables === undefined || input.tables.includes(name));
  const run = await describeRun(source, input.run, signal);
  const committed = (await archive?.manifest(run)) ?? null;
  const { instanceId, runId, status } = run;
  const free = await freeBytes(folder);
  if (committed !== null && (await isUpToDate(source, committed, run, wanted, input, signal))) {
    return { instanceId, runId, status, upToDate: true, horizon: undefined, tables: [], freeBytes: free };
  }
  const outlook = await lookAhead(source, run, committed, input.settled, signal);
  const plans: TablePlan[] = [];
  for (const table of wanted) plans.push(await planTable(outlook, table, committed, input.sliceRows));
  return {
    instanceId,
    runId,
    status,
    upToDate: false,
    horizon: outlook.until,
    tables: plans,
    freeBytes: free,
  };
}

async function planTable(
  outlook: RunOutlook,
  table: Table,
  committed: Manifest | null,
  sliceRows: number,
): Promise<TablePlan> {
  const { facts, run, until } = outlook;
  const own = facts?.get(table.name);
  const nothing = { rows: 0, slices: 0, textBytes: 0, diskBytes: 0 };
  if (facts === null) {
    return { table: table.name, absent: false, rows: null, slices: null, textBytes: null, diskBytes: null };
  }
  if (own === undefined) return { table: table.name, absent: true, ...nothing };
  const former = committed?.tables[table.name];
  const held = heldOf(former !== undefined && isOutdated(former, run) ? undefined : former);
  const countRows = outlook.countRows(table);
  const changed = countRows === undefined ? [] : await changedWindows(heldWindows(held), countRows);
  // rows set aside are asked for again: the gateway may have mended them since
  const aside = new Set(held.quarantine.map(({ segment }) => segment));
  const windows = heldWindows(held).filter(
    ({ from, to, segments }) =>
      !changed.some((w) => w.from === from && w.to === to) && !segments.some(({ file }) => aside.has(file)),
  );
  const extent = { rows: Number(own.rows), first: own.first, last: own.last, final: run.final };
  const grain = grainOf(held, extent);
  const slices = await planSlices({
    run,
    table,
    extent,
    grain,
    windows,
    until,
    sliceRows,
    countRows,
    surveyed: false,
  });
  const rows = extent.rows - windows.reduce((sum, window) => sum + window.rows, 0);
  const text = textBytes(table, rows);
  return {
    table: table.name,
    absent: false,
    rows,
    slices: slices.length,
    textBytes: text,
    diskBytes: diskBytes(text),
  };
}

function heldOf(table: TableManifest | undefined): HeldTable {
  const { segments = [], quarantine = [], grain = null } = table ?? {};
  return {
    grain: segments.length === 0 ? null : grain,
    survey: null,
    segments: [...segments],
    parquet: [],
    quarantine: [...quarantine],
  };
}
