import { createHash } from "node:crypto";
import { z } from "zod";
import { RunvaultError } from "../model/error.ts";
import { documentKinds } from "../model/source.ts";
import { type TableName, tableNames } from "../model/table.ts";
import { grains, isBucketName } from "./bucket.ts";

/**
 * State of an archived table, best first. COMPLETE: proven whole. OPEN: proven whole up to the horizon of a run that
 * goes on. ABSENT: the gateway says there is none. QUARANTINED: whole, but rows were set aside. UNVERIFIED: fetched,
 * not proven. INCOMPLETE: rows are missing, or the table failed.
 */
export const tableStates = ["COMPLETE", "OPEN", "ABSENT", "QUARANTINED", "UNVERIFIED", "INCOMPLETE"] as const;
export type TableState = (typeof tableStates)[number];

const count = z.int().nonnegative();
const int64 = z.string().regex(/^-?\d{1,19}$/);
const uint64 = z.string().regex(/^\d{1,20}$/);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
/** A file below the run's data folder: one plain name, so that no manifest can point elsewhere. */
const fileName = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,200}$/);
/** Buckets name the files that people glob, so they too are held to what `bucket.ts` makes. */
const bucketName = z.string().refine(isBucketName, "not the name of a bucket");
const instant = z.string();

/** Key of a row: ts_event and seq. */
const key = z.strictObject({ ts: int64, seq: uint64 });

export const segmentSchema = z.strictObject({
  file: fileName,
  bucket: bucketName,
  /** Window of ts_event that the segment proves covered. */
  from: int64,
  to: int64,
  rows: count,
  /** Bytes of text, and of the file. */
  bytes: count,
  storedBytes: count,
  sha256,
  longestLine: count,
  /** False when the rows are not in key order; they share their window with the other parts of the same answer. */
  sorted: z.boolean(),
});
export type Segment = z.infer<typeof segmentSchema>;

export const parquetSchema = z.strictObject({
  file: fileName,
  bucket: bucketName,
  rows: count,
  storedBytes: count,
  sha256,
  first: key,
  last: key,
});
export type ParquetFile = z.infer<typeof parquetSchema>;

export const quarantineSchema = z.strictObject({
  file: fileName,
  /** The segment that holds the rows beside which these came. */
  segment: fileName,
  rows: count,
  storedBytes: count,
  sha256,
  /** Window of that segment. */
  from: int64,
  to: int64,
});
export type QuarantineFile = z.infer<typeof quarantineSchema>;

export const rowHashSchema = z.strictObject({ rows: uint64, sum: z.string().regex(/^\d{1,39}$/) });
export type RowHash = z.infer<typeof rowHashSchema>;

const certificateSchema = z.strictObject({
  /** counted: the gateway's storage facts match. exhausted: clean ends, probes and a second pass agree. */
  proof: z.enum(["counted", "exhausted", "none"]),
  /** How the last stream ended. */
  ended: z.enum(["clean", "cut"]),
  rows: count,
  quarantined: count,
  /** Rows the gateway says it holds within the same bounds; null where it says nothing. */
  gatewayRows: uint64.nullable(),
  first: key.nullable(),
  last: key.nullable(),
  /** Exclusive upper bound of ts_event; null is the whole run. */
  until: int64.nullable(),
  schemaFingerprint: z.string().nullable(),
  rowHash: rowHashSchema.nullable(),
  checkedAt: instant,
});
export type Certificate = z.infer<typeof certificateSchema>;

const failureSchema = z.strictObject({
  code: z.string(),
  message: z.string(),
  hint: z.string().nullable(),
  at: instant,
});

const tableSchema = z.strictObject({
  state: z.enum(tableStates),
  grain: z.enum(grains),
  certificate: certificateSchema.nullable(),
  /** DuckDB types of the exact columns in this table's Parquet files. */
  exactTypes: z.record(z.string(), z.string()),
  segments: z.array(segmentSchema),
  parquet: z.array(parquetSchema),
  quarantine: z.array(quarantineSchema),
  /** Harmless differences from the contract that were seen, such as unknown fields. */
  drift: z.array(z.string()),
  /**
   * The finished run's storage version under which every row here came; for an absent table, under which that was said.
   * Null where the source has no versions, and while the run goes on.
   */
  storageVersion: z.string().nullable(),
  error: failureSchema.nullable(),
});
export type TableManifest = z.infer<typeof tableSchema>;

const documentSchema = z.strictObject({ file: fileName, storedBytes: count, sha256 });

export const manifestSchema = z.strictObject({
  format: z.literal(1),
  instanceId: z.string().min(1),
  runId: z.string().min(1),
  generation: z.int().positive(),
  state: z.enum(tableStates),
  run: z.strictObject({
    status: z.string(),
    started: int64.nullable(),
    ended: int64.nullable(),
    final: z.boolean(),
    /** As the source said in the last job. A table that this job did not take up may be of another: each says its own. */
    storageVersion: z.string().nullable(),
  }),
  /** Where the rows came from, without secrets. */
  source: z.string(),
  /** Instant up to which a run that goes on is archived; null for a finished run. */
  horizon: int64.nullable(),
  tables: z.partialRecord(z.enum(tableNames as [TableName, ...TableName[]]), tableSchema),
  documents: z.partialRecord(z.enum(documentKinds), documentSchema),
  tool: z.string(),
  startedAt: instant,
  committedAt: instant,
  durationMs: count,
  retries: count,
});
export type Manifest = z.infer<typeof manifestSchema>;

/** A manifest's text, with the hash of the rest at its end: a flipped byte anywhere in it is noticed. */
export function manifestText(manifest: Manifest): string {
  return `${JSON.stringify({ ...manifest, sha256: hashOf(manifest) }, null, 1)}\n`;
}

function hashOf(rest: object): string {
  return createHash("sha256").update(JSON.stringify(rest)).digest("hex");
}

/** Reads a manifest's text. Throws `archive_damaged` with the file and what is wrong with it. */
export function parseManifest(text: string, file: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new RunvaultError("archive_damaged", "the manifest is not JSON", { cause, place: { file } });
  }
  const { sha256: written, ...rest } = (typeof value === "object" && value !== null ? value : {}) as Record<
    string,
    unknown
  >;
  if (written !== hashOf(rest)) {
    throw new RunvaultError(
      "archive_damaged",
      "the manifest is not what was committed: its own hash differs",
      { place: { file } },
    );
  }
  const parsed = manifestSchema.safeParse(rest);
  if (!parsed.success) {
    throw new RunvaultError(
      "archive_damaged",
      `the manifest is not valid: ${z.prettifyError(parsed.error)}`,
      { place: { file } },
    );
  }
  return parsed.data;
}

/** The run's state: the worst of its tables; without one present table a run is never COMPLETE. */
export function runState(states: Iterable<TableState>): TableState {
  const present = [...states].filter((state) => state !== "ABSENT");
  if (present.length === 0) return "INCOMPLETE";
  return present.reduce((a, b) => (tableStates.indexOf(a) >= tableStates.indexOf(b) ? a : b));
}
