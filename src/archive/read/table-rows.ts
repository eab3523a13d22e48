import type { RowPiece } from "../../duckdb/parquet-reading.ts";
import { RunvaultError } from "../../model/error.ts";
import type { RunRef, TableFacts } from "../../model/source.ts";
import { isWithin, type TimeBounds } from "../../model/time.ts";
import { refuseWhenAborted } from "../../model/usual-errors.ts";
import type { Holding, ParquetFile, Segment } from "../manifest/manifest.ts";
import { type AheadBudget, readAhead } from "./read-ahead.ts";
import type { SegmentCache } from "./segment-cache.ts";
import { endOfLines, type LineSpan, linesWithin, spanTimes } from "./segment-lines.ts";

/** What a run's table has in one bucket. */
export interface TableBucket {
  /** Those with rows, in order of their windows. */
  readonly segments: readonly Segment[];
  /** By their first rows; several if some rows are proven and others are not. */
  readonly parquet: readonly ParquetFile[];
  readonly rows: number;
}

/** The buckets that may hold rows within the bounds, in their order. */
export function bucketsOf(table: Holding, bounds: TimeBounds): TableBucket[] {
  const parquet = Map.groupBy(table.parquet, ({ bucket }) => bucket);
  const byBucket = Map.groupBy(
    table.segments.filter((segment) => segment.rows > 0),
    ({ bucket }) => bucket,
  );
  return [...byBucket].flatMap(([name, segments]) =>
    segments.some((segment) => overlaps(segment, bounds))
      ? [{ segments, parquet: parquet.get(name) ?? [], rows: sumRows(segments) }]
      : [],
  );
}

/** Whether all rows of a bucket are in Parquet. */
export function isConverted({ parquet, rows }: TableBucket): boolean {
  return sumRows(parquet) === rows;
}

function sumRows(files: readonly { readonly rows: number }[]): number {
  return files.reduce((sum, { rows }) => sum + rows, 0);
}

/** False if rows are not in key order in the bucket's segments; in its Parquet they are. */
export function isSorted({ segments }: TableBucket): boolean {
  return segments.every(({ sorted }) => sorted);
}

export interface WantedLines {
  readonly bounds: TimeBounds;
  /** Most lines. */
  readonly limit: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly texts: SegmentCache;
  /** Limits text decompressed in advance of the readers. */
  readonly ahead: AheadBudget;
}

/**
 * The lines of sorted buckets within the bounds, a segment at a time, as they came from the gateway; only segments at
 * the edges are searched. Throws `archive_damaged` if a segment is not as committed.
 */
export async function* segmentLines(
  keyOf: (segment: Segment) => string,
  run: RunRef,
  buckets: readonly TableBucket[],
  { bounds, limit, signal, texts, ahead }: WantedLines,
): AsyncGenerator<RowPiece> {
  const segments = firstWithRows(
    buckets.flatMap((bucket) => bucket.segments).filter((segment) => overlaps(segment, bounds)),
    bounds,
    limit,
  );
  let left = limit ?? Number.POSITIVE_INFINITY;
  const read = (segment: Segment) => texts.read(keyOf(segment), segment);
  for await (const [segment, text] of readAhead(segments, ({ bytes }) => bytes, ahead, read)) {
    refuseWhenAborted(signal);
    const span = spanIn(text, segment, run, bounds);
    const rows = Math.min(span.rows, left);
    const end = rows < span.rows ? endOfLines(text, span.start, rows) : span.end;
    if (rows > 0) yield { bytes: text.subarray(span.start, end), rows };
    left -= rows;
    if (left === 0) return;
  }
}

/**
 * Number of rows within bounds and limit, if the segments' windows alone show it; undefined if a segment would have to
 * be read.
 */
export function knownRows(
  buckets: readonly TableBucket[],
  bounds: TimeBounds,
  limit: number | undefined,
): number | undefined {
  let rows = 0;
  let isExact = true;
  for (const segment of buckets.flatMap(({ segments }) => segments)) {
    if (liesWithin(segment, bounds)) rows += segment.rows;
    else if (overlaps(segment, bounds)) isExact = false;
    if (limit !== undefined && rows >= limit) return limit;
  }
  return isExact ? rows : undefined;
}

/** Bytes of lines of sorted buckets, if the segments' windows alone show it. */
export function knownBytes(
  buckets: readonly TableBucket[],
  bounds: TimeBounds,
  limit: number | undefined,
): number | undefined {
  const inside = buckets.flatMap(({ segments }) => segments).filter((segment) => overlaps(segment, bounds));
  if (!buckets.every(isSorted) || !inside.every((segment) => liesWithin(segment, bounds))) return undefined;
  const rows = inside.reduce((sum, segment) => sum + segment.rows, 0);
  return rows > (limit ?? rows) ? undefined : inside.reduce((sum, segment) => sum + segment.bytes, 0);
}

/** The single segment whose whole text is the answer within bounds and limit. */
export function wholeSegment(
  buckets: readonly TableBucket[],
  bounds: TimeBounds,
  limit: number | undefined,
): Segment | undefined {
  const inside = buckets.flatMap(({ segments }) => segments).filter((segment) => overlaps(segment, bounds));
  const [segment, ...others] = firstWithRows(inside, bounds, limit);
  if (segment === undefined || others.length > 0) return undefined;
  const isWhole = segment.sorted && liesWithin(segment, bounds) && (limit ?? segment.rows) >= segment.rows;
  return isWhole && buckets.every(isSorted) ? segment : undefined;
}

/** The segments within a limit: later ones need not be read in advance. */
function firstWithRows(
  segments: readonly Segment[],
  bounds: TimeBounds,
  limit: number | undefined,
): readonly Segment[] {
  if (limit === undefined) return segments;
  let certain = 0;
  for (const [i, segment] of segments.entries()) {
    if (liesWithin(segment, bounds)) certain += segment.rows;
    if (certain >= limit) return segments.slice(0, i + 1);
  }
  return segments;
}

/**
 * Rows of the buckets within the bounds, with the first and last time. Buckets inside are counted from the manifest; in
 * others only segments at the edges are read. `linesOf` returns an unsorted bucket's lines within the bounds, in key
 * order.
 */
export async function countRows(
  keyOf: (segment: Segment) => string,
  run: RunRef,
  buckets: readonly TableBucket[],
  bounds: TimeBounds,
  texts: SegmentCache,
  linesOf: (bucket: TableBucket) => AsyncIterable<RowPiece>,
): Promise<Pick<TableFacts, "rows" | "first" | "last">> {
  let rows = 0n;
  let first: bigint | undefined;
  let last: bigint | undefined;
  const add = (counted: Counted) => {
    rows += BigInt(counted.rows);
    first ??= counted.first;
    last = counted.last ?? last;
  };
  for (const bucket of buckets) {
    const [begin] = bucket.parquet;
    if (begin !== undefined && isConverted(bucket)) {
      const lasts = bucket.parquet.map(({ last }) => BigInt(last.ts));
      const ends = { first: BigInt(begin.first.ts), last: lasts.reduce((a, b) => (a > b ? a : b)) };
      if (isWithin(ends.first, bounds) && isWithin(ends.last, bounds)) {
        add({ rows: bucket.rows, ...ends });
        continue;
      }
    }
    if (isSorted(bucket)) {
      add(await countSegments(keyOf, run, bucket.segments, bounds, texts));
      continue;
    }
    for await (const { bytes, rows } of linesOf(bucket)) {
      const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      add({ rows, ...spanTimes(text, run, { start: 0, end: text.byteLength, rows }) });
    }
  }
  return { rows, first, last };
}

interface Counted {
  readonly rows: number;
  readonly first?: bigint | undefined;
  readonly last?: bigint | undefined;
}

/**
 * Counts the rows of sorted segments; reads those at the edges of the bounds, and the first and last that have rows.
 */
async function countSegments(
  keyOf: (segment: Segment) => string,
  run: RunRef,
  segments: readonly Segment[],
  bounds: TimeBounds,
  texts: SegmentCache,
): Promise<Counted> {
  const looked = new Map<Segment, Counted>();
  const look = async (segment: Segment): Promise<Counted> => {
    const known = looked.get(segment);
    if (known !== undefined) return known;
    const text = await texts.read(keyOf(segment), segment);
    const span = spanIn(text, segment, run, bounds);
    const counted = { rows: span.rows, ...(span.rows === 0 ? {} : spanTimes(text, run, span)) };
    looked.set(segment, counted);
    return counted;
  };
  const inside = segments.filter((segment) => overlaps(segment, bounds));
  let rows = 0;
  for (const segment of inside)
    rows += liesWithin(segment, bounds) ? segment.rows : (await look(segment)).rows;
  let first: bigint | undefined;
  for (let i = 0; i < inside.length && first === undefined; i++) first = (await look(inside[i]!)).first;
  let last: bigint | undefined;
  for (let i = inside.length - 1; i >= 0 && last === undefined; i--) last = (await look(inside[i]!)).last;
  return { rows, first, last };
}

function spanIn(text: Buffer, segment: Segment, run: RunRef, bounds: TimeBounds): LineSpan {
  if (liesWithin(segment, bounds)) return { start: 0, end: text.byteLength, rows: segment.rows };
  try {
    return linesWithin(text, run, bounds);
  } catch (error) {
    throw RunvaultError.from(error).at({ file: segment.file });
  }
}

function overlaps(segment: Segment, { from, to }: TimeBounds): boolean {
  return (from === undefined || BigInt(segment.to) > from) && (to === undefined || BigInt(segment.from) < to);
}

function liesWithin(segment: Segment, { from, to }: TimeBounds): boolean {
  return (
    (from === undefined || BigInt(segment.from) >= from) && (to === undefined || BigInt(segment.to) <= to)
  );
}
