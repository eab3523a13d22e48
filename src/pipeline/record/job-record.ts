import { z } from "zod";
import { verdicts } from "../../analytics/reconcile/reconcile-report.ts";
import { tableStates } from "../../archive/manifest/manifest.ts";

/** The version of records that is written, and the only one that can be read. */
export const recordVersion = 1;

const count = z.int().nonnegative();
const seconds = z.number().nonnegative();
const instant = z.iso.datetime();

/** An error in a record, without secrets and absolute paths. */
export const recordedErrorSchema = z.strictObject({
  code: z.string(),
  message: z.string(),
  hint: z.string().nullable(),
  /** Exit status that it leads to. */
  exit: count,
});
export type RecordedError = z.infer<typeof recordedErrorSchema>;

/** A run's plan before work. `held`: by another process. `gone`: the gateway forgot it. */
export const runPlans = ["new", "changed", "growing", "unchanged", "expiring", "held", "gone"] as const;
export type RunPlan = (typeof runPlans)[number];

/**
 * The result of a run. `archived`: committed, whatever its tables' states. `unchanged`: nothing to do. `by_other`:
 * another process committed it meanwhile. `held`: another process still holds it. `stopped`: begun, then ended by the
 * deadline or a signal; the next execution continues it. `gone`: the gateway forgot it, unproven.
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
  /** The job file's name without its folder, and the hash of its bytes. */
  file: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Version of this program. */
  tool: z.string(),
  host: z.string(),
  pid: count,
  /** The gateway, without user, password and query. */
  source: z.string(),
  /** When this execution must end, if it must. */
  deadline: instant.nullable(),
  /** Only the keys of `--set`, because values may be secrets. */
  set: z.array(z.string()),
});
export type BeginLine = z.infer<typeof beginLineSchema>;

/** What to do, once the lists are known. */
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
  /** State before this execution; null: the table was not in the archive. */
  before: z.enum(tableStates).nullable(),
  /** Its proof, as in the certificate. */
  proof: z.string().nullable(),
  rows: count,
  /** Whether `runvault maintain accept` accepted it. Such a table fails no job. */
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
  /** By table, for the tables that this execution was to update. */
  tables: z.record(z.string(), tableLineSchema),
  /** Fetched by this execution. */
  rows: count,
  bytes: count,
  retries: count,
  seconds,
  /** Durations by step, where known. */
  steps: z.record(z.string(), seconds),
  error: recordedErrorSchema.nullable(),
  exit: count,
});
export type RunLine = z.infer<typeof runLineSchema>;

/** A step after the commits: an export, the verification, or a run's reconciliation or report. */
export const afterLineSchema = z.strictObject({
  kind: z.literal("after"),
  at: instant,
  what: z.enum(["verify", "reconcile", "report", "keep", "export"]),
  /**
   * Name of the export's file or folder, without its parents; INSTANCE/RUN of a reconciliation or report; null for a
   * verification.
   */
  out: z.string().nullable(),
  result: z.enum(["done", "unchanged", "failed"]),
  rows: count.nullable(),
  seconds,
  /**
   * Of an export: hash of its rows' sources and how they are chosen. While it stays the same, the export need not be
   * made again.
   */
  fingerprint: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  /** Of a finished reconciliation. */
  verdict: z.enum(verdicts).optional(),
  /** Of retention: removed runs with their bytes, and bytes of unneeded files. */
  removed: z
    .strictObject({
      ...{ runs: count, bytes: count, garbage: count },
      named: z.array(z.strictObject({ instance: z.string(), run: z.string(), bytes: count })).default([]),
    })
    .optional(),
  /** Of retention by size: runs that ended no later than this and are not in the archive are not fetched again. */
  removedUpTo: instant.optional(),
  error: recordedErrorSchema.nullable(),
});
export type AfterLine = z.infer<typeof afterLineSchema>;

/** A notification of an execution to one recipient. */
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

/** Kinds of trouble that are reported when they begin and end. */
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

/** A current problem, with a key that stays the same from execution to execution. */
export const troubleSchema = z.strictObject({
  /** Such as `table:alpha-1/2022-01-01-001/fills`, `job`, `disk`. */
  key: z.string(),
  kind: z.enum(troubleKinds),
  instance: z.string().nullable(),
  run: z.string().nullable(),
  table: z.string().nullable(),
  /**
   * How bad it is: the state of a table, the exit status of a job or run, the nights that a disk lasts. Carried over,
   * it is the worst since the trouble began, so that only something worse is reported again.
   */
  level: z.string(),
  /** One sentence for people, and a hint. */
  text: z.string(),
  hint: z.string().nullable(),
  since: instant,
  /** When it was last reported; null: there is nobody to notify, or nobody could be. */
  told: instant.nullable(),
  /** When it was resolved, if nobody could be notified yet; the next execution reports it. */
  mended: instant.nullable(),
});
export type Trouble = z.infer<typeof troubleSchema>;

/** Last line. A record without one is of a running execution, or of one that died. */
export const resultLineSchema = z.strictObject({
  kind: z.literal("result"),
  at: instant,
  exit: count,
  seconds,
  plans,
  results,
  /** Runs of this job in the archive, by the worst state among their tables. */
  states: z.partialRecord(z.enum(tableStates), count),
  /** Unproven runs that the gateway will forget within a quarter of `keeps`. */
  expiring: count,
  rows: count,
  bytes: count,
  quarantinedRows: count,
  requests: count,
  retries: count,
  peakMemoryMb: count,
  /** Free space of the archive's file system, and the archive's growth in this execution, in bytes. */
  freeBytes: count,
  grownBytes: z.int(),
  /** What ended the whole execution, if anything did. */
  error: recordedErrorSchema.nullable(),
  /** Current troubles; the next execution reports changes from these. */
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
