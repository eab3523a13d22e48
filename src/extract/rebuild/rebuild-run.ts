import type { Archive } from "../../archive/archive.ts";
import { driftOf } from "../../archive/convert/drift.ts";
import { duckDBConverter } from "../../archive/convert/duckdb-form.ts";
import { lockRun } from "../../archive/lock.ts";
import type {
  Holding,
  Manifest,
  ParquetFile,
  Segment,
  TableManifest,
} from "../../archive/manifest/manifest.ts";
import { holdingsOf } from "../../archive/manifest/table-view.ts";
import { lostFiles, namesOf } from "../../archive/read/lost-files.ts";
import { typesNow } from "../../archive/types-now.ts";
import { commitRun, tidyCommitted } from "../../archive/write/commit.ts";
import { refuseFetchedWork } from "../../archive/write/refuse-fetched-work.ts";
import { generationOf, holdsCommittedWork, RunJournal, type Step } from "../../archive/write/run-journal.ts";
import { JobDuckDB, usualMeans } from "../../duckdb/job-duckdb.ts";
import { interruptOn } from "../../duckdb/open-duckdb.ts";
import { rowHashWithin } from "../../duckdb/row-hash-within.ts";
import { RunvaultError } from "../../model/error.ts";
import { sameTypes } from "../../model/profile/exact-types.ts";
import { type Table, type TableName, tableNamed, tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";
import { isoOf, type Nanoseconds } from "../../model/time.ts";
import { notArchived } from "../../model/usual-errors.ts";
import { BucketConverter } from "../fetch/bucket-converter.ts";
import { refuseWhenFull } from "../fetch/disk-need.ts";

export interface RebuildJob {
  readonly archive: Archive;
  readonly run: RunRef;
  /** All tables unless given. */
  readonly tables?: readonly TableName[] | undefined;
  /**
   * Parquet of this generation and those before is made anew; null: none of these, only what is not in the archive's
   * types. What is lost and has whole segments is made anew in any case.
   */
  readonly upTo: number | null;
  readonly clock: () => Nanoseconds;
  readonly signal: AbortSignal;
  /** Version of this program, for the manifest. */
  readonly tool: string;
  /** What converts, for a caller with several jobs, one after another. Default: one for this job. */
  readonly duckdb?: JobDuckDB;
  readonly step?: Step;
  /** Rows that will be converted in all, once it is known. */
  readonly onPlan?: (rows: number) => void;
  /** Rows as buckets are done. */
  readonly onRows?: (rows: number, bytes: number) => void;
}

export interface RebuildOutcome {
  readonly manifest: Manifest;
  /** False when there was nothing to make anew. */
  readonly changed: boolean;
  /** Buckets converted by this job, and those that an interrupted one had converted. */
  readonly buckets: number;
  readonly resumedBuckets: number;
  readonly rows: number;
}

/** One bucket of a table whose Parquet is made anew, of the segments that the former was made of. */
interface Bucket {
  readonly table: Table;
  readonly former: ParquetFile;
  readonly segments: readonly Segment[];
}

/**
 * Makes a run's Parquet anew from its segments, in the types that the archive has now, and commits it as a new
 * generation. Rows, certificates and everything else of the run stay. Running it again after an interruption converts
 * no bucket twice.
 *
 * Throws `not_archived`; `locked` where another job works on the run, or left fetched rows that are not committed;
 * `archive_damaged` where a segment is not what was committed, or its rows are others than those of the former Parquet;
 * `value_out_of_range` and `malformed_row` where a row does not fit the types or the contract. Then nothing changed.
 */
export async function rebuildRun(job: RebuildJob): Promise<RebuildOutcome> {
  const { archive, run, clock, signal, step = () => {} } = job;
  const startedAt = isoOf(clock());
  const startedMs = performance.now();
  // before the lock is taken: its file would be all that is there of a misspelt run
  await committedOf(archive, run);
  await using _lock = await lockRun(archive.layout, run);
  await archive.refresh();
  const committed = await committedOf(archive, run);
  // a kill between the commit and the end of its job
  if (await holdsCommittedWork(archive.layout, run, committed))
    await tidyCommitted(archive, committed, clock());
  const names = tableNames.filter(
    (name) => committed.tables[name] !== undefined && (job.tables === undefined || job.tables.includes(name)),
  );
  const lost = namesOf(await lostFiles(archive, committed));
  const buckets = names.flatMap((name) =>
    bucketsToMake(archive, name, committed.tables[name]!, job.upTo, lost),
  );
  const retyped = names.some((name) => isOfOtherTypes(archive, name, committed.tables[name]!));
  if (buckets.length === 0 && !retyped) {
    return { manifest: committed, changed: false, buckets: 0, resumedBuckets: 0, rows: 0 };
  }
  await refuseFetchedWork(archive, committed);
  const needed = sumOf(buckets, ({ storedBytes }) => storedBytes);
  for (const disk of archive.layout.disks) await refuseWhenFull(disk, needed);
  const exactTypes = typesNow(archive);
  const storageVersion = committed.run.final ? committed.run.storageVersion : null;
  const { layout, store } = archive;
  await using journal = await RunJournal.open(
    { layout, store, run, committed, storageVersion, final: committed.run.final, exactTypes, lost },
    step,
  );
  await using ownDuckDB = new JobDuckDB();
  const duckdb = await (job.duckdb ?? ownDuckDB).forJob({
    ...usualMeans,
    tempDirectory: archive.layout.stagingDir(run),
  });
  await using converter = new BucketConverter(
    duckDBConverter(duckdb.connection),
    (table) => exactTypes(table.name),
    step,
    "refuse",
  );
  using _interrupt = interruptOn(signal, duckdb);

  job.onPlan?.(sumOf(buckets, ({ rows }) => rows));
  let resumedBuckets = 0;
  for (const { table, former, segments } of buckets) {
    signal.throwIfAborted();
    for (const segment of segments) await journal.locateWhole(segment);
    if (journal.isConvertedAnew(table.name, former.bucket, segments)) resumedBuckets++;
    else await converter.convert(journal, run, table, former.bucket, () => segments);
    refuseOtherRows(committed, table, former, parquetOf(journal, table.name, former.bucket, segments).file);
    job.onRows?.(former.rows, former.storedBytes);
  }
  const tables: Manifest["tables"] = { ...committed.tables };
  for (const name of names) {
    const table = committed.tables[name]!;
    const made = new Map(buckets.map((bucket) => [bucket.former.file, bucket.segments]));
    const rebuilt = async <H extends Holding>(holding: H): Promise<H> => {
      const found = holding.parquet.map((file) => {
        const segments = made.get(file.file);
        return segments === undefined ? undefined : parquetOf(journal, name, file.bucket, segments);
      });
      const parquet = holding.parquet.map((file, i) => found[i]?.file ?? file);
      const drift = found.every((one) => one !== undefined)
        ? driftOf(found.map((one) => one.drift))
        : holding.drift;
      const sum = holding.certificate?.rowHash?.sum;
      // with a bucket lost whose segments are lost, too, there is nothing to compare with
      const isWhole = parquet.every(({ file }) => !lost.has(file));
      if (sum !== undefined && isWhole && found.some((one) => one !== undefined)) {
        const files = await Promise.all(parquet.map((file) => journal.locateWhole(file)));
        if ((await rowHashWithin(duckdb.connection, tableNamed(name), files)).hash !== BigInt(sum)) {
          throw otherRows(committed, name, "the row hash is not the certified one");
        }
      }
      return {
        ...holding,
        exactTypes: { ...exactTypes(name) },
        parquet,
        drift: parquet.length === 0 ? holding.drift : drift,
      };
    };
    const { proven, attempt } = table;
    tables[name] = {
      ...table,
      proven: proven === null ? null : await rebuilt(proven),
      attempt: {
        ...attempt,
        holding: attempt.holding === null ? null : await rebuilt(attempt.holding),
      },
    };
  }
  signal.throwIfAborted();
  const manifest: Manifest = {
    ...committed,
    generation: journal.generation,
    tables,
    tool: job.tool,
    startedAt,
    committedAt: isoOf(clock()),
    durationMs: Math.round(performance.now() - startedMs),
    retries: 0,
  };
  await commitRun(archive, manifest, journal, step);
  await journal.remove();
  step("pending-removed");
  return {
    manifest,
    changed: true,
    buckets: buckets.length - resumedBuckets,
    resumedBuckets,
    rows: sumOf(buckets, ({ rows }) => rows),
  };
}

/** Whether a table of a run is not in the types that the archive has now. */
export function isOfOtherTypes(archive: Archive, name: TableName, table: TableManifest): boolean {
  return holdingsOf(table).some(({ exactTypes }) => !sameTypes(exactTypes, archive.exactTypes(name)));
}

async function committedOf(archive: Archive, run: RunRef): Promise<Manifest> {
  const committed = await archive.manifest(run);
  if (committed === null) throw notArchived(run);
  return committed;
}

/** All buckets of a table in other types: one table's files never mix these. */
function bucketsToMake(
  archive: Archive,
  name: TableName,
  table: TableManifest,
  upTo: number | null,
  lost: ReadonlySet<string>,
): Bucket[] {
  const all = isOfOtherTypes(archive, name, table);
  const isAsked = ({ file }: ParquetFile) => all || (upTo !== null && generationOf(file) <= upTo);
  const buckets = new Map<string, Bucket>();
  for (const { parquet, segments } of holdingsOf(table)) {
    for (const former of parquet) {
      const of = segments.filter(({ bucket }) => bucket === former.bucket);
      const isToMend = lost.has(former.file) && of.every(({ file }) => !lost.has(file));
      if (isAsked(former) || isToMend)
        buckets.set(former.file, { table: tableNamed(name), former, segments: of });
    }
  }
  return [...buckets.values()];
}

function parquetOf(journal: RunJournal, name: TableName, bucket: string, segments: readonly Segment[]) {
  const made = journal.held.converted(name, bucket, segments);
  if (made === undefined)
    throw new RunvaultError("internal", `bucket ${bucket} of ${name} was not converted`);
  return made;
}

/** Segments are what the Parquet was made of, so that the same rows come of them again. */
function refuseOtherRows(run: RunRef, table: Table, former: ParquetFile, made: ParquetFile): void {
  const text = ({ rows, first, last }: ParquetFile) =>
    `${countText(rows, "row")} from (${first.ts}, ${first.seq}) to (${last.ts}, ${last.seq})`;
  if (text(former) === text(made)) return;
  const what = `bucket ${former.bucket} had ${text(former)}, its segments have ${text(made)}`;
  throw otherRows(run, table.name, what);
}

function otherRows({ instanceId: instance, runId: run }: RunRef, table: TableName, what: string) {
  return new RunvaultError(
    "archive_damaged",
    `the segments hold different rows from those committed: ${what}`,
    {
      place: { instance, run, table },
    },
  );
}

function sumOf(buckets: readonly Bucket[], of: (file: ParquetFile) => number): number {
  return buckets.reduce((sum, { former }) => sum + of(former), 0);
}
