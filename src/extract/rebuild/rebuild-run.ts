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
   * Parquet of this generation and those before is made anew; null: none of these, only what is not in the archive's
   * types. What is lost and has whole segments is made anew in any case.
   */
  readonly upTo: number | null;
}

export interface RebuildOutcome {
  readonly manifest: Manifest;
  /** False if there was nothing to rebuild. */
  readonly changed: boolean;
  /** Buckets converted by this job, and those that an interrupted one had converted. */
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
 * Makes a run's Parquet anew from its segments, in the types that the archive has now, and commits it as a new
 * generation. Rows, certificates and everything else of the run stay. Running it again after an interruption converts
 * no bucket twice.
 *
 * Throws `not_archived`; `locked` where another job works on the run, or left fetched rows that are not committed;
 * `archive_damaged` where a segment is not what was committed, or its rows are others than those of the former Parquet;
 * `value_out_of_range` and `malformed_row` where a row does not fit the types or the contract. Then nothing changed.
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
  return {
    manifest: await rebuild.commit({ tables }),
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
