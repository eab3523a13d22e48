import { lstat } from "node:fs/promises";
import { z } from "zod";
import { parseJson } from "../../model/outside-json.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { grains } from "../bucket.ts";
import type { Layout } from "../layout.ts";
import { evidenceSchema } from "../manifest/evidence.ts";
import { parquetSchema, quarantineSchema, segmentSchema, throughSchema } from "../manifest/manifest.ts";
import { mostBytes, readArchiveFile } from "../storage/archive-file.ts";
import { isMissing } from "../storage/fsync-files.ts";

/** The results of a full pass over a table of a source without facts. */
const scanSchema = z.strictObject({
  rows: z.int().nonnegative(),
  first: z.string().nullable(),
  last: z.string().nullable(),
  sha256: z.string(),
  until: z.string().nullable(),
  /** Timestamps whose rows a cap may have truncated, with no other answer that shows them to be complete. */
  openEnds: z.array(
    z.strictObject({
      from: z.string(),
      to: z.string(),
      rows: z.int().nonnegative(),
      bytes: z.int().nonnegative(),
      /** True if an answer held them after others. */
      isHeld: z.boolean(),
      /** Earlier timestamps, ever further back, to ask from. */
      ahead: z.array(z.string()),
      /** True if these are all rows of the answer, so a cap may have hit the first timestamp as well. */
      isAll: z.literal(true).optional(),
    }),
  ),
  /** The largest answers for the table; a later command has not seen them. */
  answers: z.array(
    z.strictObject({
      rows: z.int().nonnegative(),
      bytes: z.int().nonnegative(),
      wireBytes: z.int().nonnegative(),
    }),
  ),
  longestLine: z.int().nonnegative(),
  /** The shortest time, in milliseconds, of an answer that stopped early; null if none did. */
  cutMs: z.number().nonnegative().nullable(),
});
export type ScanRecord = z.infer<typeof scanSchema>;

const table = z.enum(tableNames as [TableName, ...TableName[]]);
const entrySchema = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("open"),
    format: z.literal(1),
    instanceId: z.string(),
    runId: z.string(),
    generation: z.int(),
    /** Of the finished run with these rows; null if unknown, and while the run grows. */
    storageVersion: z.string().nullable(),
    /** Whether the run was final when its rows were fetched. */
    final: z.boolean().default(false),
    /** Rows converted from committed ones with another map: such work always starts over. */
    remaps: z.literal(true).optional(),
  }),
  z.strictObject({ kind: z.literal("grain"), table, grain: z.enum(grains) }),
  // how the rows of later entries came; null if as the contract says
  z.strictObject({ kind: z.literal("through"), table, through: throughSchema.nullable() }),
  // one that another version wrote is made again
  z.strictObject({ kind: z.literal("survey"), table, survey: scanSchema.nullable().catch(null) }),
  // the parts of one unsorted answer count together or not at all
  z.strictObject({ kind: z.literal("segments"), table, segments: z.array(segmentSchema) }),
  // their rows were streamed again, and were the same
  z.strictObject({ kind: z.literal("compared"), table, files: z.array(z.string()) }),
  // the parts replace the segment at once, so that every row is always in one
  z.strictObject({
    kind: z.literal("split"),
    table,
    replaces: z.string(),
    segments: z.array(segmentSchema),
  }),
  z.strictObject({ kind: z.literal("drop"), table, files: z.array(z.string()) }),
  // new evidence about the table, added to earlier entries or, with afresh, replacing them
  z.strictObject({
    kind: z.literal("seen"),
    table,
    evidence: z.array(evidenceSchema),
    isAfresh: z.boolean(),
  }),
  z.strictObject({
    kind: z.literal("parquet"),
    table,
    parquet: parquetSchema,
    of: z.array(z.string()),
    drift: z.array(z.string()),
    /** Types of its exact columns. */
    exactTypes: z.record(z.string(), z.string()),
  }),
  z.strictObject({
    kind: z.literal("clean"),
    table,
    replaces: z.string(),
    segment: segmentSchema,
    quarantine: quarantineSchema.nullable(),
  }),
]);
export type Entry = z.infer<typeof entrySchema>;

/** A journal's whole lines as entries, and their number of bytes. */
export interface Journal {
  readonly entries: readonly Entry[];
  readonly wholeBytes: number;
  readonly bytes: number;
  /** When it was last written, in milliseconds since 1970. */
  readonly notedMs: number;
}

/**
 * Reads a journal without changing it; null if there is none. A torn last line, from a kill, does not count; any other
 * damage makes it no journal. Throws `archive_damaged` if it is not a file.
 */
export async function readJournal(layout: Layout, run: RunRef): Promise<Journal> {
  const file = layout.journalFile(run);
  let bytes: Buffer;
  let notedMs: number;
  try {
    bytes = await readArchiveFile(layout, file, mostBytes.journal);
    notedMs = (await lstat(file)).mtimeMs;
  } catch (error) {
    if (isMissing(error)) return { entries: [], wholeBytes: 0, bytes: 0, notedMs: 0 };
    throw error;
  }
  const wholeBytes = bytes.lastIndexOf(10) + 1;
  const sizes = { wholeBytes, bytes: bytes.byteLength, notedMs };
  const entries: Entry[] = [];
  for (const line of bytes.toString("utf8", 0, wholeBytes).split("\n").slice(0, -1)) {
    const parsed = entrySchema.safeParse(jsonOrNull(line));
    if (!parsed.success) return { entries: [], ...sizes };
    entries.push(parsed.data);
  }
  return { entries, ...sizes };
}

function jsonOrNull(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}
