import type { Archive } from "../../archive/archive.ts";
import { duckDBConverter } from "../../archive/convert/duckdb-form.ts";
import { lockRun } from "../../archive/lock.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { typesNow } from "../../archive/types-now.ts";
import { commitRun, tidyCommitted } from "../../archive/write/commit.ts";
import { refuseFetchedWork } from "../../archive/write/refuse-fetched-work.ts";
import { holdsCommittedWork, RunJournal, type Step } from "../../archive/write/run-journal.ts";
import { JobDuckDB, usualMeans } from "../../duckdb/job-duckdb.ts";
import { interruptOn, type OpenDuckDB } from "../../duckdb/open-duckdb.ts";
import { Disposables } from "../../model/disposables.ts";
import type { ExactTypes } from "../../model/profile/exact-types.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { isoOf, type Nanoseconds } from "../../model/time.ts";
import { notArchived } from "../../model/usual-errors.ts";
import { type BadLines, BucketConverter } from "../fetch/bucket-converter.ts";
import { refuseWhenFull } from "../fetch/disk-need.ts";
import type { ConversionChange } from "../run-watcher.ts";

/** A run to rebuild, whatever the kind of rebuild. */
export interface RunRebuild {
  readonly archive: Archive;
  readonly run: RunRef;
  /** Default: all tables. */
  readonly tables?: readonly TableName[] | undefined;
  readonly clock: () => Nanoseconds;
  readonly signal: AbortSignal;
  /** Version of this program, for the manifest. */
  readonly tool: string;
  /** The database that converts, for a caller with several jobs in a row. Default: a new one. */
  readonly duckdb?: JobDuckDB;
  readonly step?: Step;
  /** Called with the total number of rows to convert, once known. */
  readonly onPlan?: (rows: number) => void;
  /** Called with rows and bytes as buckets are finished. */
  readonly onRows?: (rows: number, bytes: number) => void;
  readonly onConversion?: (change: ConversionChange) => void;
}

/** A run under the lock of its rebuild. */
export interface LockedRun extends AsyncDisposable {
  readonly committed: Manifest;
  readonly startedAt: string;
  readonly startedMs: number;
}

/** Locks a committed run and tidies up after a job killed just after its commit. Throws `not_archived` and `locked`. */
export async function lockCommitted({ archive, run, clock }: RunRebuild): Promise<LockedRun> {
  const started = { startedAt: isoOf(clock()), startedMs: performance.now() };
  // before locking, which would leave a lock file for a misspelt run
  await committedOf(archive, run);
  await using opened = new Disposables();
  opened.use(await lockRun(archive.layout, run));
  await archive.refresh();
  const committed = await committedOf(archive, run);
  if (await holdsCommittedWork(archive.layout, run, committed))
    await tidyCommitted(archive, committed, clock());
  const lock = opened.move();
  return { ...started, committed, [Symbol.asyncDispose]: () => lock[Symbol.asyncDispose]() };
}

async function committedOf(archive: Archive, run: RunRef): Promise<Manifest> {
  const committed = await archive.manifest(run);
  if (committed === null) throw notArchived(run);
  return committed;
}

export interface Rebuild extends AsyncDisposable {
  readonly journal: RunJournal;
  readonly converter: BucketConverter;
  readonly duckdb: OpenDuckDB;
  /** The types that the archive has now. */
  readonly exactTypes: (table: TableName) => ExactTypes;
  /** Commits these tables as a new generation, unless the signal has aborted: then it throws the signal's reason. */
  commit(changed: Pick<Manifest, "tables"> & Partial<Pick<Manifest, "state">>): Promise<Manifest>;
}

/** What differs from one kind of rebuild to another. */
interface RebuildKind extends Pick<Parameters<typeof RunJournal.open>[0], "lost" | "remaps"> {
  readonly badLines: BadLines;
  /** Disk space needed. */
  readonly neededBytes: number;
}

/** Throws `locked` if another job left uncommitted rows, and `storage_full` if the disk has no room. */
export async function openRebuild(
  { archive, run, clock, signal, tool, duckdb: shared, step = () => {} }: RunRebuild,
  { committed, startedAt, startedMs }: LockedRun,
  { badLines, neededBytes, ...kind }: RebuildKind,
): Promise<Rebuild> {
  const { layout, store } = archive;
  const { final } = committed.run;
  await refuseFetchedWork(archive, committed);
  for (const disk of layout.disks) await refuseWhenFull(disk, neededBytes);
  const exactTypes = typesNow(archive);
  const storageVersion = final ? committed.run.storageVersion : null;
  await using opened = new Disposables();
  const journal = opened.use(
    await RunJournal.open(
      { layout, store, run, committed, storageVersion, final, exactTypes, ...kind },
      step,
    ),
  );
  // no job continues with rows half converted to another profile; the next job removes files that this one cannot
  let isLeft = kind.remaps !== true;
  opened.defer(() => (isLeft ? undefined : journal.remove().catch(() => {})));
  const ownDuckDB = opened.use(new JobDuckDB());
  const duckdb = await (shared ?? ownDuckDB).forJob({ ...usualMeans, tempDirectory: layout.stagingDir(run) });
  const toParquet = duckDBConverter(duckdb.connection);
  const converter = opened.use(
    new BucketConverter(toParquet, (table) => exactTypes(table.name), step, badLines, signal),
  );
  const interrupt = interruptOn(signal, duckdb);
  opened.defer(() => interrupt[Symbol.dispose]());
  const all = opened.move();
  return {
    journal,
    converter,
    duckdb,
    exactTypes,
    async commit(changed) {
      signal.throwIfAborted();
      const manifest: Manifest = {
        ...committed,
        ...changed,
        generation: journal.generation,
        tool,
        startedAt,
        committedAt: isoOf(clock()),
        durationMs: Math.round(performance.now() - startedMs),
        retries: 0,
      };
      isLeft = true;
      await commitRun(archive, manifest, journal, step);
      await journal.remove();
      step("pending-removed");
      return manifest;
    },
    [Symbol.asyncDispose]: () => all[Symbol.asyncDispose](),
  };
}
