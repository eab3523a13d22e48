import type { Archive } from "../../archive/archive.ts";
import { driftOf } from "../../archive/convert/drift.ts";
import type {
  Holding,
  Manifest,
  ParquetFile,
  Segment,
  TableManifest,
} from "../../archive/manifest/manifest.ts";
import { holdingsOf } from "../../archive/manifest/table-view.ts";
import { lostFiles, namesOf } from "../../archive/read/lost-files.ts";
import { generationOf, type RunJournal } from "../../archive/write/run-journal.ts";
import { rowHashWithin } from "../../duckdb/row-hash-within.ts";
import { RunvaultError } from "../../model/error.ts";
import { sameTypes } from "../../model/profile/exact-types.ts";
import { type Table, type TableName, tableNamed, tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";
import { lockCommitted, openRebuild, type RunRebuild } from "./open-rebuild.ts";

export interface RebuildJob extends RunRebuild {
  /**
   * Parquet up to this generation is rebuilt. With null, only Parquet that does not have the archive's types is. Lost
   * files with intact segments are always rebuilt.
   */
  readonly upTo: number | null;
}

export interface RebuildOutcome {
  readonly manifest: Manifest;
  /** False if there was nothing to rebuild. */
  readonly changed: boolean;
  /** Buckets converted by this job, or before by an interrupted one. */
  readonly buckets: number;
  readonly resumedBuckets: number;
  readonly rows: number;
}

/** One bucket of a table to rebuild from the same segments. */
interface Bucket {
  readonly table: Table;
  readonly former: ParquetFile;
  readonly segments: readonly Segment[];
}

/**
 * Rebuilds a run's Parquet from its segments, in the types that the archive has now, and commits it as a new
 * generation. Rows, certificates and everything else stay as they are. Running it again after an interruption converts
 * no bucket twice.
 *
 * Throws `not_archived`; `locked` if another job works on the run or left uncommitted rows;
 * `archive_damaged` if a segment is not what was committed, or its rows differ from those of the old Parquet;
 * `value_out_of_range` and `malformed_row` if a row does not fit the types or the contract. Then nothing has changed.
 */
export async function rebuildRun(job: RebuildJob): Promise<RebuildOutcome> {
  const { archive, run, signal } = job;
  await using locked = await lockCommitted(job);
  const { committed } = locked;
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
  const neededBytes = sumOf(buckets, ({ storedBytes }) => storedBytes);
  await using rebuild = await openRebuild(job, locked, { badLines: "refuse", neededBytes, lost });
  const { journal, converter, duckdb, exactTypes } = rebuild;

  job.onPlan?.(sumOf(buckets, ({ rows }) => rows));
  for (const _ of buckets) job.onConversion?.("planned");
  let resumedBuckets = 0;
  for (const { table, former, segments } of buckets) {
    signal.throwIfAborted();
    for (const segment of segments) await journal.locateWhole(segment);
    if (journal.isConvertedAnew(table.name, former.bucket, segments)) resumedBuckets++;
    else await converter.convert(journal, run, table, former.bucket, () => segments);
    refuseOtherRows(committed, table, former, parquetOf(journal, table.name, former.bucket, segments).file);
    job.onRows?.(former.rows, former.storedBytes);
    job.onConversion?.("done");
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
      // if a bucket is lost together with its segments, there is nothing to compare with
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
  return {
    manifest: await rebuild.commit({ tables }),
    changed: true,
    buckets: buckets.length - resumedBuckets,
    resumedBuckets,
    rows: sumOf(buckets, ({ rows }) => rows),
  };
}

/** Whether a run's table has other types than the archive now. */
export function isOfOtherTypes(archive: Archive, name: TableName, table: TableManifest): boolean {
  return holdingsOf(table).some(({ exactTypes }) => !sameTypes(exactTypes, archive.exactTypes(name)));
}

/** The buckets to rebuild: all of a table if its types differ, because one table's files never mix types. */
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

/** Throws unless a rebuilt bucket has the same rows as before: its segments are what the old Parquet was made from. */
function refuseOtherRows(run: RunRef, table: Table, former: ParquetFile, made: ParquetFile): void {
  const text = ({ rows, first, last }: ParquetFile) =>
    `${countText(rows, "row")} from (${first.ts}, ${first.seq}) to (${last.ts}, ${last.seq})`;
  if (text(former) === text(made)) return;
  const what = `bucket ${former.bucket} had ${text(former)}, but its segments have ${text(made)}`;
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
