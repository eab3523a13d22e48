import { z } from "zod";
import { verdicts } from "../../analytics/reconcile/reconcile-report.ts";
import { tableStates } from "../../archive/manifest/manifest.ts";

/** The version of records that is written, and the only one that is read. */
export const recordVersion = 1;

const count = z.int().nonnegative();
const seconds = z.number().nonnegative();
const instant = z.iso.datetime();

/** An error as a record keeps it: without secrets, and without a path that is absolute. */
export const recordedErrorSchema = z.strictObject({
  code: z.string(),
  message: z.string(),
  hint: z.string().nullable(),
  /** Exit status that it leads to. */
  exit: count,
});
export type RecordedError = z.infer<typeof recordedErrorSchema>;

/** What a run is to a job, before it is worked on. `held`: by another process. `gone`: the gateway forgot it. */
export const runPlans = ["new", "changed", "growing", "unchanged", "expiring", "held", "gone"] as const;
export type RunPlan = (typeof runPlans)[number];

/**
 * What became of a run. `archived`: committed, whatever its tables came to. `unchanged`: there was nothing to do.
 * `by_other`: another process committed it meanwhile. `held`: another process has it still. `stopped`: begun, and ended
 * by the deadline or a signal; the next execution goes on. `gone`: the gateway forgot it, unproven.
 */
export const runResults = [
  "archived",
  "unchanged",
  "by_other",
  "held",
  "stopped",
  "gone",
  "failed",
  "not_tried",
] as const;
export type RunResult = (typeof runResults)[number];

const plans = z.partialRecord(z.enum(runPlans), count);
const results = z.partialRecord(z.enum(runResults), count);

/** First line: written before the first request. */
export const beginLineSchema = z.strictObject({
  kind: z.literal("begin"),
  version: z.literal(recordVersion),
  job: z.string(),
  /** Of this execution: the record's file is named `<time>-<id>.ndjson`. */
  id: z.string().regex(/^[0-9a-z]{8}$/),
  at: instant,
  /** The job file's own name, without its folder, and the hash of its bytes. */
  file: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Version of this program. */
  tool: z.string(),
  host: z.string(),
  pid: count,
  /** The gateway, without user, password and query. */
  source: z.string(),
  /** When this execution has to end, if it has to. */
  deadline: instant.nullable(),
  /** Values given over those of the file: keys alone, for a value may be anything. */
  set: z.array(z.string()),
});
export type BeginLine = z.infer<typeof beginLineSchema>;

/** What is to be done, once the lists are there. */
export const planLineSchema = z.strictObject({
  kind: z.literal("plan"),
  at: instant,
  runs: plans,
  /** The run that INSTANCE/latest of the job file was, as INSTANCE/RUN. */
  latest: z.string().optional(),
});
export type PlanLine = z.infer<typeof planLineSchema>;

const tableLineSchema = z.strictObject({
  state: z.enum(tableStates),
  /** State before this execution; null: the archive did not hold the table. */
  before: z.enum(tableStates).nullable(),
  /** How it is proven: as the certificate says. */
  proof: z.string().nullable(),
  rows: count,
  /** Whether `runvault maintain accept` keeps it as it is, so that it fails no job. */
  accepted: z.boolean(),
  error: recordedErrorSchema.nullable(),
});
export type TableLine = z.infer<typeof tableLineSchema>;

/** A run that had work. */
export const runLineSchema = z.strictObject({
  kind: z.literal("run"),
  at: instant,
  instance: z.string(),
  run: z.string(),
  plan: z.enum(runPlans),
  result: z.enum(runResults),
  /** By table, of those that this execution was to bring up to date. */
  tables: z.record(z.string(), tableLineSchema),
  /** Fetched by this execution. */
  rows: count,
  bytes: count,
  retries: count,
  seconds,
  /** Durations by step, where they are known. */
  steps: z.record(z.string(), seconds),
  error: recordedErrorSchema.nullable(),
  exit: count,
});
export type RunLine = z.infer<typeof runLineSchema>;

/** A step after the commits: an export, the verification, or the reconciliation or report of a run. */
export const afterLineSchema = z.strictObject({
  kind: z.literal("after"),
  at: instant,
  what: z.enum(["verify", "reconcile", "report", "keep", "export"]),
  /** Name of the export's file or folder, without the folders above; INSTANCE/RUN of a reconciliation or report; null for a verification. */
  out: z.string().nullable(),
  result: z.enum(["done", "unchanged", "failed"]),
  rows: count.nullable(),
  seconds,
  /** Of an export: hash of what its rows come from and of how they are chosen; with the same one it need not be made anew. */
  fingerprint: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  /** Of a reconciliation that came to its end. */
  verdict: z.enum(verdicts).optional(),
  /** Of retention: runs that were removed with their bytes, and bytes that no run needed any more. */
  removed: z.strictObject({ runs: count, bytes: count, garbage: count }).optional(),
  /** Of retention by size: runs that ended no later than this and are not in the archive are not fetched again. */
  removedUpTo: instant.optional(),
  error: recordedErrorSchema.nullable(),
});
export type AfterLine = z.infer<typeof afterLineSchema>;

/** What of an execution was told to one of those who are to be told. */
export const toldLineSchema = z.strictObject({
  kind: z.literal("told"),
  at: instant,
  to: z.enum(["heartbeat", "webhook", "slack", "teams", "mail", "command", "textfile", "pushgateway"]),
  result: z.enum(["done", "failed"]),
  attempts: count,
  /** Without the address. */
  error: recordedErrorSchema.nullable(),
});
export type ToldLine = z.infer<typeof toldLineSchema>;

/** Kinds of trouble that are told when they come and when they are mended. */
export const troubleKinds = [
  "job",
  "table",
  "run",
  "gone",
  "expiring",
  "after",
  "missed",
  "died",
  "disk",
] as const;
export type TroubleKind = (typeof troubleKinds)[number];

/** Something that is wrong now, by a key that stays the same from execution to execution. */
export const troubleSchema = z.strictObject({
  /** Such as `table:alpha-1/2022-01-01-001/fills`, `job`, `disk`. */
  key: z.string(),
  kind: z.enum(troubleKinds),
  instance: z.string().nullable(),
  run: z.string().nullable(),
  table: z.string().nullable(),
  /**
   * How bad it is: the state of a table, the exit status of a job or run, the nights that a disk lasts for. Carried from
   * execution to execution it is the worst since the trouble began, so that only worse of the same is told.
   */
  level: z.string(),
  /** One sentence for people, and what to do. */
  text: z.string(),
  hint: z.string().nullable(),
  since: instant,
  /** When it was last told; null: nobody is to be told, or nobody could be. */
  told: instant.nullable(),
  /** When it was mended, where nobody could be told of that yet: it is wrong no more, and told by the next execution. */
  mended: instant.nullable(),
});
export type Trouble = z.infer<typeof troubleSchema>;

/** Last line. A record without one is of an execution that is under way, or that died. */
export const resultLineSchema = z.strictObject({
  kind: z.literal("result"),
  at: instant,
  exit: count,
  seconds,
  plans,
  results,
  /** Runs of this job in the archive, by the worst state among their tables. */
  states: z.partialRecord(z.enum(tableStates), count),
  /** Runs that the gateway forgets within a quarter of `keeps`, and that are not proven. */
  expiring: count,
  rows: count,
  bytes: count,
  quarantinedRows: count,
  requests: count,
  retries: count,
  peakMemoryMb: count,
  /** Free space of the archive's file system, and bytes by which this execution made the archive grow. */
  freeBytes: count,
  grownBytes: z.int(),
  /** What ended the whole execution, if anything did. */
  error: recordedErrorSchema.nullable(),
  /** What is wrong now: the next execution tells what changed against this. */
  troubles: z.array(troubleSchema),
});
export type ResultLine = z.infer<typeof resultLineSchema>;

/** One line of a record: `jobs/<job>/<time>-<id>.ndjson`. */
export const recordLineSchema = z.discriminatedUnion("kind", [
  beginLineSchema,
  planLineSchema,
  runLineSchema,
  afterLineSchema,
  toldLineSchema,
  resultLineSchema,
]);
export type RecordLine = z.infer<typeof recordLineSchema>;
