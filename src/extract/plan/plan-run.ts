import type { Archive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { concerning, lostFiles, namesOf } from "../../archive/read/lost-files.ts";
import { requireRealFoldersOf } from "../../archive/storage/real-folder.ts";
import { typesNow } from "../../archive/types-now.ts";
import { HeldTables, nothingHeld } from "../../archive/write/held-tables.ts";
import { RunvaultError } from "../../model/error.ts";
import type { Table, TableName } from "../../model/profile/table.ts";
import type { RetryPolicy } from "../../model/retry/retry-policy.ts";
import type { HistorySource, RunRef } from "../../model/source.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { RunLists } from "../choose/run-lists.ts";
import { diskBytes, diskRoom, hasRoom, leastRoom, textBytes } from "../fetch/disk-need.ts";
import { SeenSource } from "../proof/seen-source.ts";
import { type ArchiveSettings, trustedWork } from "../run/archive-run.ts";
import { type RunDescription, settledVersion } from "../run/run-description.ts";
import { type CountRows, isUpToDate, lookAhead } from "../run/run-horizon.ts";
import { requireSameRun } from "../run/run-identity.ts";
import { standingAcceptances } from "../run/standing-acceptances.ts";
import { askPlan, type TablePlan as Planning, saidNone } from "./ask-plan.ts";
import type { AbsentPlan, FetchPlan } from "./plan.ts";
import { needsEnd, routeOf } from "./route.ts";
import { countSlice, slicesOf } from "./slices.ts";
import { isSaidNone, wantedTables } from "./wanted-tables.ts";

/** The plan for archiving a run. */
export interface RunPlan extends RunRef {
  readonly status: string;
  readonly upToDate: boolean;
  readonly horizon: Nanoseconds | undefined;
  readonly tables: readonly TablePlan[];
  /** Free bytes on the archive's disk, or on the scratch folder's disk if that has less. */
  readonly freeBytes: number;
  /** Bytes of these that a job leaves free. */
  readonly reserveBytes: number;
}

export interface TablePlan {
  readonly table: TableName;
  readonly absent: boolean;
  /** Rows to fetch, the size of their text and their size on disk; null if the gateway has no storage facts. */
  readonly rows: number | null;
  readonly textBytes: number | null;
  readonly diskBytes: number | null;
  /** Windows to ask for; null if unknown, if the disk has no room for their rows, or above 100,000. */
  readonly slices: number | null;
  /** Why the job would leave the table as it is. */
  readonly error: RunvaultError | null;
}

/** The plan of one table; null if only a full scan could tell, an error if the job would leave the table alone. */
type Planned = Planning | RunvaultError | null;

/** The input of a run's plan. `archive` is null if it does not exist yet. */
export interface RunPlanInput {
  source: HistorySource;
  /** The source's lists of runs, for a caller with several plans. Default: requested for this plan alone. */
  lists?: RunLists;
  archive: Archive | null;
  folder: string;
  /** The folder for temporary files, if not in the archive: it needs as much room. */
  scratch?: string | undefined;
  run: RunRef;
  /** Observations of the source, for a caller with several plans. */
  seen?: SeenSource;
  tables: readonly TableName[] | undefined;
  settings: ArchiveSettings;
  clock: () => Nanoseconds;
  retry: RetryPolicy;
  signal: AbortSignal;
}

/** Plans a run as its job would, by the same planner, without fetching or writing anything. */
export async function planRun(input: RunPlanInput): Promise<RunPlan> {
  const { source, archive, settings, retry, signal } = input;
  const { sliceRows, acceptShrink } = settings;
  const settled = input.clock() - settings.settleNs;
  const wanted = wantedTables(source, input.tables);
  const lists = input.lists ?? new RunLists(source, { finishedStatus: [], settled: () => settled });
  const run = await lists.describe(input.run, signal);
  const committed = (await archive?.manifest(run)) ?? null;
  const { instanceId, runId, status } = run;
  const disks = input.scratch === undefined ? [input.folder] : [input.folder, input.scratch];
  const room = leastRoom(await Promise.all(disks.map(diskRoom)));
  const common = { instanceId, runId, status, freeBytes: room.free, reserveBytes: room.reserve };
  const lost = archive === null ? [] : await lostFiles(archive, committed);
  const isWhole = concerning(lost, wanted).length === 0;
  const asks = { source, run, retry, signal };
  const { open } = await standingAcceptances(source, committed, run, wanted, lost, signal);
  const isHeld = async () =>
    committed !== null &&
    (open.length === 0 || (await isUpToDate(source, committed, run, open, settings, asks)));
  if (isWhole && (await isHeld())) {
    return { ...common, upToDate: true, horizon: undefined, tables: [] };
  }
  if (archive !== null && committed !== null) {
    const identity = { source, archive, run, committed, isMoved: settings.sourceMoved, retry, signal };
    await requireSameRun({ ...identity, isToFetch: true, isDry: true });
  }
  const seen = input.seen ?? new SeenSource();
  const outlook = await lookAhead(source, run, committed, settled, seen, { signal, fetching: signal });
  const { until, facts, countRows } = outlook;
  const trusted = trustedWork(outlook, settings);
  const held = archive === null ? null : await heldNow(archive, run, committed, namesOf(lost), trusted);

  const planOf = async (table: Table, countRows: CountRows | undefined): Promise<Planned> => {
    const { name } = table;
    const former = committed?.tables[name];
    const ownHeld = held?.of(name) ?? nothingHeld();
    const route = routeOf(source, table);
    const known = {
      ...{ table: name, run, until, facts, held: ownHeld, former, sliceRows, acceptShrink },
      comesWhole: !route.bounds.from,
      needsEnd: needsEnd(route),
    };
    try {
      if (isSaidNone(source, table)) return await askPlan({ ...known, facts: null }, saidNone);
      return await askPlan(known, { countRows, fullScan: undefined, split: undefined, restore: undefined });
    } catch (thrown) {
      signal.throwIfAborted();
      const error = RunvaultError.from(thrown).at({ instance: instanceId, run: runId, table: name });
      if (error.scope !== "table") throw error;
      return error;
    }
  };
  const plans: TablePlan[] = [];
  for (const table of open) {
    const plan = await planOf(table, countRows(table));
    const size = sizeOf(table, plan);
    // if the disk has no room for the rows, counting slices is pointless and may never end
    const fits = size !== null && hasRoom(room, size.diskBytes);
    const slices = fits ? await countSlices(run, table, plan, countRows(table)) : null;
    plans.push({
      table: table.name,
      absent: isAbsent(plan),
      ...(size ?? { rows: null, textBytes: null, diskBytes: null }),
      slices,
      error: plan instanceof RunvaultError ? plan : null,
    });
  }
  return { ...common, upToDate: false, horizon: until, tables: plans };
}

async function heldNow(
  archive: Archive,
  run: RunDescription,
  committed: Manifest | null,
  lost: ReadonlySet<string>,
  trusted: ReturnType<typeof trustedWork>,
): Promise<HeldTables> {
  // as the job does when it takes the run's lock
  await requireRealFoldersOf(archive.layout, run);
  const exactTypes = typesNow(archive);
  const work = { run, committed, storageVersion: settledVersion(run), final: run.final, exactTypes, lost };
  return (await HeldTables.read({ layout: archive.layout, store: archive.store, ...work, ...trusted })).held;
}

/** The size of a plan's rows; null if unknown. */
function sizeOf(table: Table, plan: Planned) {
  if (plan === null) return null;
  const rows = isFetch(plan) ? plan.rows : 0;
  const text = textBytes(table, rows);
  return { rows, textBytes: text, diskBytes: diskBytes(text) };
}

/** More than anyone needs: facts with absurd times would give far more. */
const mostLooked = 100_000;

async function countSlices(
  run: RunRef,
  table: Table,
  plan: Planned,
  countRows: CountRows | undefined,
): Promise<number | null> {
  let count = 0;
  let looked = 0;
  for (const slice of isFetch(plan) ? slicesOf(run, table, plan) : []) {
    if (++looked > mostLooked) return null;
    if ((await countSlice(slice, countRows)) !== null) count++;
  }
  return count;
}

function isFetch(plan: Planned): plan is FetchPlan {
  return plan !== null && !(plan instanceof RunvaultError) && plan.kind === "fetch";
}

function isAbsent(plan: Planned): plan is AbsentPlan {
  return plan !== null && !(plan instanceof RunvaultError) && plan.kind === "absent";
}
