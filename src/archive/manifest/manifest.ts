import { createHash } from "node:crypto";
import { z } from "zod";
import { rowMapSchema } from "../../model/profile/row-map.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import { documentKinds } from "../../model/source.ts";
import { grains, isBucketName } from "../bucket.ts";
import { evidenceSchema } from "./evidence.ts";

/**
 * The part of a table that was last proven, which readers show. COMPLETE: whole. OPEN: whole up to the horizon of a
 * growing run. ABSENT: the gateway says that there is no such table.
 */
export const provenStates = ["COMPLETE", "OPEN", "ABSENT"] as const;
export type ProvenState = (typeof provenStates)[number];

/**
 * The outcome of the latest attempt to update a table. QUARANTINED: whole, but rows were set aside. UNVERIFIED:
 * fetched, not proven. INCOMPLETE: rows are missing, or the table failed.
 */
export const attemptOutcomes = ["ok", "QUARANTINED", "UNVERIFIED", "INCOMPLETE"] as const;
export type AttemptOutcome = (typeof attemptOutcomes)[number];

/** State of an archived table, best first: the proven state, unless the latest attempt failed. */
export const tableStates = [...provenStates, "QUARANTINED", "UNVERIFIED", "INCOMPLETE"] as const;
export type TableState = (typeof tableStates)[number];

const count = z.int().nonnegative();
const int64 = z.string().regex(/^-?\d{1,19}$/);
const uint64 = z.string().regex(/^\d{1,20}$/);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
/** A file below the run's data folder: one plain name, so that no manifest can point elsewhere. */
const fileName = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,200}$/);
/** Buckets are names of files that people glob, so they too must be as `bucket.ts` makes them. */
const bucketName = z.string().refine(isBucketName, "not the name of a bucket");
const instant = z.string();

/** Key of a row: ts_event and seq. */
const key = z.strictObject({ ts: int64, seq: uint64 });

export const segmentSchema = z.strictObject({
  file: fileName,
  bucket: bucketName,
  /** Window of ts_event that the segment is proven to cover. */
  from: int64,
  to: int64,
  rows: count,
  /** Bytes of text, and of the file. */
  bytes: count,
  storedBytes: count,
  sha256,
  longestLine: count,
  /** False if the rows are not in key order; they then share their window with the other parts of the same answer. */
  sorted: z.boolean(),
  /** The segment from which these rows were split off, where the gateway's rows begin now. */
  partOf: fileName.optional(),
  /** The gateway counted, or hashed, other rows in its window than came: the next job fetches it again. */
  doubted: z.literal(true).optional(),
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
  /** The segment of the rows with which these came. */
  segment: fileName,
  rows: count,
  storedBytes: count,
  sha256,
  /** Window of that segment. */
  from: int64,
  to: int64,
});
export type QuarantineFile = z.infer<typeof quarantineSchema>;

const rowHashSchema = z.strictObject({ rows: uint64, sum: z.string().regex(/^\d{1,39}$/) });
export type RowHash = z.infer<typeof rowHashSchema>;

export const certificateSchema = z.strictObject({
  /**
   * hashed: counted, and the gateway's row checksum equals our row hash. counted: the gateway's storage facts match.
   * exhausted: clean ends, probes and a second pass agree.
   */
  proof: z.enum(["hashed", "counted", "exhausted", "none"]),
  /** How the last stream ended. */
  ended: z.enum(["clean", "cut"]),
  rows: count,
  quarantined: count,
  /** True if the operator accepts the table as proven without the rows set aside. */
  quarantineAccepted: z.boolean(),
  /** Rows within the same bounds by the gateway's count; null if it does not count. */
  gatewayRows: uint64.nullable(),
  /**
   * Where the gateway's rows began. Earlier rows were proven by earlier jobs and are now gone from the gateway. Null if
   * the gateway still had all of them.
   */
  gatewayFrom: int64.nullable(),
  first: key.nullable(),
  last: key.nullable(),
  /** Exclusive upper bound of ts_event; null for the whole run. */
  until: int64.nullable(),
  schemaFingerprint: z.string().nullable(),
  rowHash: rowHashSchema.nullable(),
  /** Further grounds of the proof, in words; empty if an older format did not record them. */
  restsOn: z.array(z.string()),
  checkedAt: instant,
});
export type Certificate = z.infer<typeof certificateSchema>;

export const failureSchema = z.strictObject({
  code: z.string(),
  message: z.string(),
  hint: z.string().nullable(),
  at: instant,
});
export type Failure = z.infer<typeof failureSchema>;

/** How the rows came: a foreign gateway's profile, and how its rows were converted. */
export const throughSchema = z.strictObject({
  /** The profile's name. */
  profile: z.string(),
  /** Left out if its rows are already canonical. */
  map: rowMapSchema.optional(),
  /** Of the map. */
  fingerprint: sha256.optional(),
  /** Notable facts, such as that its pages are numbered. */
  notes: z.array(z.string()),
});
export type Through = z.infer<typeof throughSchema>;

const holding = {
  /** Null for an absent table. */
  certificate: certificateSchema.nullable(),
  /** Left out if the rows came from a gateway of the contract, without anything notable. */
  through: throughSchema.optional(),
  /** DuckDB types of the exact columns in this table's Parquet files, and of `extra` if they have it. */
  exactTypes: z.record(z.string(), z.string()),
  segments: z.array(segmentSchema),
  parquet: z.array(parquetSchema),
  quarantine: z.array(quarantineSchema),
  /** Harmless deviations from the contract, such as unknown fields. */
  drift: z.array(z.string()),
  /**
   * The finished run's storage version for all rows here; for an absent table, the version at which that was said. Null
   * if the source has no versions, and while the run grows.
   */
  storageVersion: z.string().nullable(),
};
export const holdingSchema = z.strictObject(holding);
export type Holding = z.infer<typeof holdingSchema>;

const provenSchema = z.strictObject({ state: z.enum(provenStates), ...holding });
export type Proven = z.infer<typeof provenSchema>;

const attemptSchema = z.strictObject({
  outcome: z.enum(attemptOutcomes),
  at: instant,
  /** Since when attempts have failed; null after a successful one. */
  behindSince: instant.nullable(),
  error: failureSchema.nullable(),
  /**
   * Notable facts that are not errors: rows that the gateway no longer keeps, a version that changed without reason.
   */
  notes: z.array(z.string()),
  /**
   * All rows here after a failed attempt; null if it brought nothing worth keeping. After a successful one, rows that
   * were never proven and that the gateway no longer has; in buckets shared with proven rows, all rows. Also kept
   * beside the proven rows of a run that its gateway forgot, because they cannot be fetched again.
   */
  holding: holdingSchema.nullable(),
  /**
   * What the gateway reported and sent about the table: the next attempt is compared with it. After a successful
   * attempt, only what lies after its horizon.
   */
  seen: z.array(evidenceSchema).optional(),
  /** Rows of failed attempts that were not all kept: the most in one attempt, and the earliest ts_event known. */
  came: z.strictObject({ rows: count, first: int64.nullable() }).optional(),
});
export type Attempt = z.infer<typeof attemptSchema>;

/** One line of text from a person: it must not break other lines, whatever a manifest contains. */
const oneLine = (most: number) =>
  z
    .string()
    .regex(/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]*$/u, "must be one line, without control characters")
    .refine((text) => /\S/.test(text), "must not be empty")
    .refine((text) => [...text].length <= most, `must have at most ${most} characters`);

/** Why the operator accepts a table. */
export const acceptReasonSchema = oneLine(500);

const acceptanceSchema = z.strictObject({
  at: instant,
  /** User and host of the person who accepted it. */
  by: oneLine(300),
  reason: acceptReasonSchema,
  /** The accepted attempt, by its end and outcome; the acceptance applies to no other. */
  attemptAt: instant,
  outcome: z.enum(attemptOutcomes).exclude(["ok"]),
  /** Whether the run had ended. */
  final: z.boolean(),
  /** The attempt's storage version; null if the source has none, or it is unknown. */
  storageVersion: z.string().nullable(),
  /** The gateway's count at the time; null if it does not count, or it is unknown. */
  gatewayRows: uint64.nullable(),
});
/** The operator's decision to accept an unproven table. */
export type Acceptance = z.infer<typeof acceptanceSchema>;

const tableSchema = z.strictObject({
  state: z.enum(tableStates),
  grain: z.enum(grains),
  /** The last proven part, whatever later attempts did; null if nothing ever was. */
  proven: provenSchema.nullable(),
  attempt: attemptSchema,
  /** Left out if nothing is accepted. Every later attempt at the table ends it. */
  accepted: acceptanceSchema.optional(),
});
export type TableManifest = z.infer<typeof tableSchema>;

const documentSchema = z.strictObject({ file: fileName, storedBytes: count, sha256 });

const formerSchema = z.strictObject({
  /** Null for a document of the run. */
  table: z.enum(tableNames as [TableName, ...TableName[]]).nullable(),
  folder: z.enum(["data", "quarantine"]),
  file: fileName,
  storedBytes: count,
  sha256,
  /** It was Parquet of the proven part of its table. */
  proven: z.boolean(),
  replacedAt: instant,
});
/** A file of an earlier generation that was replaced and is kept for readers. */
export type FormerFile = z.infer<typeof formerSchema>;

export const manifestSchema = z.strictObject({
  format: z.literal(2),
  instanceId: z.string().min(1),
  runId: z.string().min(1),
  generation: z.int().positive(),
  state: z.enum(tableStates),
  run: z.strictObject({
    status: z.string(),
    started: int64.nullable(),
    ended: int64.nullable(),
    final: z.boolean(),
    /** It had ended, but its source had not called it final. Left out otherwise. */
    unmarked: z.literal(true).optional(),
    /** The version in the last job. Tables that this job did not update may have another, their own. */
    storageVersion: z.string().nullable(),
  }),
  /** Where the rows came from, without secrets. */
  source: z.string(),
  /** Instant up to which a growing run is archived; null for a finished run. */
  horizon: int64.nullable(),
  /** When the operator closed a run that its gateway no longer knows; null otherwise. */
  closedAt: instant.nullable(),
  tables: z.partialRecord(z.enum(tableNames as [TableName, ...TableName[]]), tableSchema),
  documents: z.partialRecord(z.enum(documentKinds), documentSchema),
  /** Left out if no file is kept. Expired entries stay until the next commit. */
  former: z.array(formerSchema).optional(),
  tool: z.string(),
  startedAt: instant,
  committedAt: instant,
  durationMs: count,
  retries: count,
});
export type Manifest = z.infer<typeof manifestSchema>;

/**
 * A manifest's text, with the hash of the rest at its end, so that a flipped byte is noticed. On one line, because in
 * small runs it is the largest file; `jq . FILE` makes it readable.
 */
export function manifestText(manifest: Manifest): string {
  return `${JSON.stringify({ ...manifest, sha256: hashOf(manifest) })}\n`;
}

/** The hash of a manifest's other members. */
export function hashOf(rest: object): string {
  return createHash("sha256").update(JSON.stringify(rest)).digest("hex");
}

/** A table's state, from its parts. */
export function tableState({ proven, attempt }: Pick<TableManifest, "proven" | "attempt">): TableState {
  if (attempt.outcome !== "ok") return attempt.outcome;
  // a successful attempt has proven something; `verify` catches a manifest that says otherwise
  return proven?.state ?? "INCOMPLETE";
}

/** State of an archived run, best first. */
export const runStates = tableStates.filter((state) => state !== "ABSENT");

/** The run's state: the worst of its tables; without a present table a run is never COMPLETE. */
export function runState(states: Iterable<TableState>): TableState {
  const present = [...states].filter((state) => state !== "ABSENT");
  if (present.length === 0) return "INCOMPLETE";
  return present.reduce((a, b) => (tableStates.indexOf(a) >= tableStates.indexOf(b) ? a : b));
}
