import { createHash } from "node:crypto";
import { z } from "zod";
import { rowMapSchema } from "../../model/profile/row-map.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import { documentKinds } from "../../model/source.ts";
import { grains, isBucketName } from "../bucket.ts";
import { evidenceSchema } from "./evidence.ts";

/**
 * What of a table was last proven, and readers show. COMPLETE: whole. OPEN: whole up to the horizon of a run that goes
 * on. ABSENT: the gateway says that there is no such table.
 */
export const provenStates = ["COMPLETE", "OPEN", "ABSENT"] as const;
export type ProvenState = (typeof provenStates)[number];

/**
 * What became of the latest attempt to bring a table up to date. QUARANTINED: whole, but rows were set aside.
 * UNVERIFIED: fetched, not proven. INCOMPLETE: rows are missing, or the table failed.
 */
export const attemptOutcomes = ["ok", "QUARANTINED", "UNVERIFIED", "INCOMPLETE"] as const;
export type AttemptOutcome = (typeof attemptOutcomes)[number];

/** State of an archived table, best first: what is proven, unless the latest attempt went wrong. */
export const tableStates = [...provenStates, "QUARANTINED", "UNVERIFIED", "INCOMPLETE"] as const;
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
  /** The segment whose rows these were, before it was parted where the gateway's rows begin now. */
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

const rowHashSchema = z.strictObject({ rows: uint64, sum: z.string().regex(/^\d{1,39}$/) });
export type RowHash = z.infer<typeof rowHashSchema>;

export const certificateSchema = z.strictObject({
  /**
   * hashed: counted, and the gateway's row checksum is our row hash. counted: the gateway's storage facts match.
   * exhausted: clean ends, probes and a second pass agree.
   */
  proof: z.enum(["hashed", "counted", "exhausted", "none"]),
  /** How the last stream ended. */
  ended: z.enum(["clean", "cut"]),
  rows: count,
  quarantined: count,
  /** True where the operator takes the table for proven without the rows set aside. */
  quarantineAccepted: z.boolean(),
  /** Rows the gateway says it holds within the same bounds; null where it says nothing. */
  gatewayRows: uint64.nullable(),
  /**
   * Where the gateway's rows began: those before were proven by earlier jobs, and are gone at the gateway since. Null
   * where the gateway still had all of them.
   */
  gatewayFrom: int64.nullable(),
  first: key.nullable(),
  last: key.nullable(),
  /** Exclusive upper bound of ts_event; null is the whole run. */
  until: int64.nullable(),
  schemaFingerprint: z.string().nullable(),
  rowHash: rowHashSchema.nullable(),
  /** What the proof rests on beside its kind, in words; nothing where a format before this one did not say. */
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

/** What rows came through: the profile of a gateway that differs, and how its rows became those that are here. */
export const throughSchema = z.strictObject({
  /** The profile's name. */
  profile: z.string(),
  /** Left out where its rows are canonical as they come. */
  map: rowMapSchema.optional(),
  /** Of the map. */
  fingerprint: sha256.optional(),
  /** What is worth telling of the way, such as that its pages go by number. */
  notes: z.array(z.string()),
});
export type Through = z.infer<typeof throughSchema>;

const holding = {
  /** Null for a table that is absent. */
  certificate: certificateSchema.nullable(),
  /** Left out where the rows came from a gateway of the contract, with nothing to tell of it. */
  through: throughSchema.optional(),
  /** DuckDB types of the exact columns in this table's Parquet files, and that of `extra` where they have it. */
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
};
export const holdingSchema = z.strictObject(holding);
export type Holding = z.infer<typeof holdingSchema>;

const provenSchema = z.strictObject({ state: z.enum(provenStates), ...holding });
export type Proven = z.infer<typeof provenSchema>;

const attemptSchema = z.strictObject({
  outcome: z.enum(attemptOutcomes),
  at: instant,
  /** Since when attempts have gone wrong; null after one that was ok. */
  behindSince: instant.nullable(),
  error: failureSchema.nullable(),
  /** What was seen and is no error: rows that the gateway no longer keeps, a version that moved for nothing. */
  notes: z.array(z.string()),
  /**
   * All rows that are here after an attempt that went wrong; null where it brought nothing worth keeping. After one that was
   * ok, rows that were never proven and that the gateway no longer has, of a bucket that they share with proven rows all rows.
   * It stays beside what is proven of a run that its gateway forgot, for it cannot be had again.
   */
  holding: holdingSchema.nullable(),
  /**
   * What the gateway told and brought of the table: the next attempt is held against it. Of one that was ok, what lies behind its
   * horizon.
   */
  seen: z.array(evidenceSchema).optional(),
  /** Rows that came in attempts that went wrong, where not all were kept: the most of one, and the earliest ts_event known. */
  came: z.strictObject({ rows: count, first: int64.nullable() }).optional(),
});
export type Attempt = z.infer<typeof attemptSchema>;

/** One line that somebody wrote: whatever else stands in a manifest, it breaks no line of those who read it. */
const oneLine = (most: number) =>
  z
    .string()
    .regex(/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]*$/u, "must be one line, without control characters")
    .refine((text) => /\S/.test(text), "must not be empty")
    .refine((text) => [...text].length <= most, `must have at most ${most} characters`);

/** Why the operator accepts a table as it is. */
export const acceptReasonSchema = oneLine(500);

const acceptanceSchema = z.strictObject({
  at: instant,
  /** The user and the host of whoever accepted it. */
  by: oneLine(300),
  reason: acceptReasonSchema,
  /** The attempt that is accepted, by its end and what became of it: of no other does this say anything. */
  attemptAt: instant,
  outcome: z.enum(attemptOutcomes).exclude(["ok"]),
  /** Whether the run had ended. */
  final: z.boolean(),
  /** The storage version that the attempt was of; null where the source has none, or it is not known. */
  storageVersion: z.string().nullable(),
  /** What the gateway counted then; null where it counts nothing, or that is not known. */
  gatewayRows: uint64.nullable(),
});
/** The operator's word that a table which is not proven stays as it is. */
export type Acceptance = z.infer<typeof acceptanceSchema>;

const tableSchema = z.strictObject({
  state: z.enum(tableStates),
  grain: z.enum(grains),
  /** What was last proven, whatever became of later attempts; null where nothing ever was. */
  proven: provenSchema.nullable(),
  attempt: attemptSchema,
  /** Left out where nothing is accepted. Every later attempt at the table ends it. */
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
  /** It was Parquet of what was proven of its table. */
  proven: z.boolean(),
  replacedAt: instant,
});
/** A file of generations before, which a commit replaced and which is kept for its readers. */
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
    /** As the source said in the last job. A table that this job did not take up may be of another: each says its own. */
    storageVersion: z.string().nullable(),
  }),
  /** Where the rows came from, without secrets. */
  source: z.string(),
  /** Instant up to which a run that goes on is archived; null for a finished run. */
  horizon: int64.nullable(),
  /** When the operator closed a run that its gateway no longer knows; null otherwise. */
  closedAt: instant.nullable(),
  tables: z.partialRecord(z.enum(tableNames as [TableName, ...TableName[]]), tableSchema),
  documents: z.partialRecord(z.enum(documentKinds), documentSchema),
  /** Left out where no file is kept. What is expired stays here until the next commit. */
  former: z.array(formerSchema).optional(),
  tool: z.string(),
  startedAt: instant,
  committedAt: instant,
  durationMs: count,
  retries: count,
});
export type Manifest = z.infer<typeof manifestSchema>;

/**
 * A manifest's text, with the hash of the rest at its end: a flipped byte anywhere in it is noticed. In one line, for of a
 * small run it is the largest file: `jq . FILE` shows it to people.
 */
export function manifestText(manifest: Manifest): string {
  return `${JSON.stringify({ ...manifest, sha256: hashOf(manifest) })}\n`;
}

/** The hash of a manifest without its hash. */
export function hashOf(rest: object): string {
  return createHash("sha256").update(JSON.stringify(rest)).digest("hex");
}

/** The state of a table by its parts. */
export function tableState({ proven, attempt }: Pick<TableManifest, "proven" | "attempt">): TableState {
  if (attempt.outcome !== "ok") return attempt.outcome;
  // an attempt that was ok has proven something; a manifest that says otherwise is caught by `verify`
  return proven?.state ?? "INCOMPLETE";
}

/** State of an archived run, best first. */
export const runStates = tableStates.filter((state) => state !== "ABSENT");

/** The run's state: the worst of its tables; without one present table a run is never COMPLETE. */
export function runState(states: Iterable<TableState>): TableState {
  const present = [...states].filter((state) => state !== "ABSENT");
  if (present.length === 0) return "INCOMPLETE";
  return present.reduce((a, b) => (tableStates.indexOf(a) >= tableStates.indexOf(b) ? a : b));
}
