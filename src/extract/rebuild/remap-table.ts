import { bucketAt, chooseGrain, type Grain } from "../../archive/bucket.ts";
import { driftOf } from "../../archive/convert/drift.ts";
import type { Holding, QuarantineFile, Segment } from "../../archive/manifest/manifest.ts";
import type { RunJournal } from "../../archive/write/run-journal.ts";
import { mostSegmentBytes } from "../../archive/write/segment.ts";
import { hasDerivedSeq, type RowMap } from "../../model/profile/row-map.ts";
import type { Table } from "../../model/profile/table.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { BucketConverter } from "../fetch/bucket-converter.ts";
import { BufferPool } from "../fetch/buffer-pool.ts";
import { SegmentBuilder } from "../fetch/segment-builder.ts";
import type { RemappedLines } from "./remapped-lines.ts";

const segmentBytes = 8 * 1024 * 1024;

/** The files of a holding after conversion to another map. */
export type RemappedFiles = Pick<Holding, "segments" | "parquet" | "quarantine" | "drift">;

/** The buckets for these rows: the same as in a new archive. */
export function grainOf(lines: readonly RemappedLines[], final: boolean, before: Grain): Grain {
  const extents = lines.flatMap(({ extent }) => (extent === undefined ? [] : [extent]));
  if (extents.length === 0) return before;
  const first = extents.map((extent) => extent.first).reduce((a, b) => (a < b ? a : b));
  const last = extents.map((extent) => extent.last).reduce((a, b) => (a > b ? a : b));
  return chooseGrain({ rows: Math.max(...lines.map(({ rows }) => rows)), first, last, final });
}

/**
 * Writes rows of another map as segments, cut and numbered like fetched rows, sets bad lines aside, and converts.
 * `window` is what they cover together. Throws as fetching and conversion do.
 */
export async function writeRemapped(
  journal: RunJournal,
  converter: BucketConverter,
  table: Table,
  lines: RemappedLines,
  {
    grain,
    window,
    map,
    signal,
  }: {
    readonly grain: Grain;
    readonly window: { readonly from: Nanoseconds; readonly to: Nanoseconds };
    readonly map: RowMap;
    readonly signal: AbortSignal;
  },
): Promise<RemappedFiles> {
  const { run } = journal;
  const held = journal.held.of(table.name);
  held.segments = [];
  held.quarantine = [];
  const numbers = hasDerivedSeq(map) ? map.ties : "given";
  const pool = new BufferPool(3, segmentBytes + (1 << 20));
  let unread: Buffer | undefined = lines.unread;
  for (let at: Nanoseconds | undefined = window.from; at !== undefined; ) {
    signal.throwIfAborted();
    const bucket = bucketAt(grain, at);
    const to = bucket.to === undefined || bucket.to > window.to ? window.to : bucket.to;
    const builder = new SegmentBuilder({
      ...{ run, from: at, to, segmentBytes, mostBytes: mostSegmentBytes, unsorted: false, numbers, pool },
    });
    let from = at;
    const write = async (cuts: ReturnType<SegmentBuilder["finish"]>) => {
      for await (const { text, release, rows, longestLine, next } of cuts) {
        const end = next ?? to;
        const draft = { bucket: bucket.name, from: `${from}`, to: `${end}`, rows, longestLine, sorted: true };
        const segment = await journal.writeSegment(table.name, { ...draft, bytes: text.byteLength }, text);
        release();
        await journal.addSegments(table.name, [segment]);
        from = end;
      }
    };
    try {
      builder.beginAnswer(from);
      if (unread !== undefined && unread.byteLength > 0) await write(builder.push(unread));
      unread = undefined;
      for await (const piece of lines.within(at, to)) {
        signal.throwIfAborted();
        await write(builder.push(piece));
      }
      await write(builder.finish());
    } finally {
      builder.discard();
    }
    await converter.convert(journal, run, table, bucket.name);
    at = to < window.to ? await lines.nextTime(to) : undefined;
  }
  return filesOf(journal, table);
}

function filesOf(journal: RunJournal, table: Table): RemappedFiles {
  const held = journal.held.of(table.name);
  const segments: Segment[] = [...held.segments];
  const quarantine: QuarantineFile[] = [...held.quarantine];
  const made = [...new Set(segments.map(({ bucket }) => bucket))].flatMap(
    (bucket) => journal.held.converted(table.name, bucket) ?? [],
  );
  return {
    segments,
    quarantine,
    parquet: made.map(({ file }) => file).sort((a, b) => (a.bucket < b.bucket ? -1 : 1)),
    drift: driftOf(made.map(({ drift }) => drift)),
  };
}
