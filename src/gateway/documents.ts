import { z } from "zod";
import { type ErrorPlace, RunvaultError } from "../model/error.ts";
import type { InstanceEntry, RunEntry, RunRef, StorageFacts, TableFacts } from "../model/source.ts";
import { isTableName, type TableName } from "../model/table.ts";
import { int64Max, int64Min } from "../model/time.ts";

// A 64-bit integer is a string on the wire: as a JSON number it would already have gone through a double.
const int64 = z
  .string()
  .regex(/^-?\d{1,19}$/, "expected a 64-bit integer as a string")
  .transform((text) => BigInt(text))
  .refine((value) => value >= int64Min && value <= int64Max, "outside the range of int64");
const uint64 = z
  .string()
  .regex(/^\d{1,20}$/, "expected an unsigned 64-bit integer as a string")
  .transform((text) => BigInt(text))
  .refine((value) => value < 1n << 64n, "outside the range of uint64");

const id = z.string().min(1).max(1024);
const runId = id.refine((value) => value !== "current", "the word current is not a run");

const instances = z.object({
  instances: z.array(
    z.object({
      instance_id: id,
      run_ids: z.array(runId).default([]),
      latest_run_id: z.union([z.literal(""), runId]).default(""),
    }),
  ),
});

const runs = z.object({
  runs: z.array(
    z.object({
      run_id: runId,
      instance_id: id,
      status: z.string().max(64),
      ts_started: int64,
      ts_ended: int64,
      final: z.boolean(),
      storage_version: z.string().max(1024).default(""),
    }),
  ),
});

const facts = z.object({
  tables: z.array(
    z.object({
      table: z.string().max(256),
      rows: uint64,
      min_ts_event: int64,
      max_ts_event: int64,
      schema_fingerprint: z.string().max(1024).default(""),
      final: z.boolean(),
    }),
  ),
});

/** Reads /history/instances. An entry that names only its latest run has that one. Throws `not_a_gateway`. */
export function readInstances(bytes: Uint8Array, place: ErrorPlace): readonly InstanceEntry[] {
  const entries = parse(instances, bytes, place).instances;
  requireDistinct(
    entries.map(({ instance_id }) => instance_id),
    "instance",
    place,
  );
  return entries.map(({ instance_id, run_ids, latest_run_id }) => {
    requireDistinct(run_ids, "run", place);
    const missing = latest_run_id !== "" && !run_ids.includes(latest_run_id);
    return { instanceId: instance_id, runIds: missing ? [...run_ids, latest_run_id] : run_ids };
  });
}

/** Reads /history/runs of an instance. Throws `not_a_gateway`, and `history_identity_conflict` for another's run. */
export function readRuns(bytes: Uint8Array, instanceId: string, place: ErrorPlace): readonly RunEntry[] {
  const entries = parse(runs, bytes, place).runs;
  requireDistinct(
    entries.map(({ run_id }) => run_id),
    "run",
    place,
  );
  return entries.map((entry) => {
    if (entry.instance_id !== instanceId) throw conflict(place);
    return {
      instanceId,
      runId: entry.run_id,
      status: entry.status,
      started: entry.ts_started,
      ended: entry.ts_ended === 0n ? undefined : entry.ts_ended,
      final: entry.final,
      storageVersion: entry.storage_version === "" ? undefined : entry.storage_version,
    };
  });
}

/** Reads /history/storage. Tables that runvault does not know are left out. Throws `not_a_gateway`. */
export function readFacts(bytes: Uint8Array, place: ErrorPlace): StorageFacts {
  const entries = parse(facts, bytes, place).tables;
  requireDistinct(
    entries.map(({ table }) => table),
    "table",
    place,
  );
  const known = new Map<TableName, TableFacts>();
  for (const { table, rows, min_ts_event, max_ts_event, schema_fingerprint, final } of entries) {
    if (!isTableName(table)) continue;
    if (rows > 0n && min_ts_event > max_ts_event) {
      throw notTheContract(place, `tables: ${table} has its smallest ts_event after its largest`);
    }
    known.set(table, {
      rows,
      first: rows === 0n ? undefined : min_ts_event,
      last: rows === 0n ? undefined : max_ts_event,
      schemaFingerprint: schema_fingerprint,
      final,
    });
  }
  return known;
}

/**
 * Checks a document whose fields nobody has fixed: a JSON object that, where it names a run and an instance, names
 * these. Throws `not_a_gateway` or `history_identity_conflict`.
 */
export function checkRunDocument(bytes: Uint8Array, run: RunRef, place: ErrorPlace): void {
  const { run_id, instance_id } = parse(
    z.looseObject({ run_id: z.string().optional(), instance_id: z.string().optional() }),
    bytes,
    place,
  );
  if ((run_id ?? run.runId) !== run.runId || (instance_id ?? run.instanceId) !== run.instanceId) {
    throw conflict(place);
  }
}

/** The JSON value of a document. Throws `not_a_gateway` for what is not UTF-8 or not JSON. */
export function readJson(bytes: Uint8Array, place: ErrorPlace): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    // the parser's own message quotes the document, which may be anything
    throw notTheContract(place, "not JSON");
  }
}

function parse<T extends z.ZodType>(schema: T, bytes: Uint8Array, place: ErrorPlace): z.output<T> {
  const parsed = schema.safeParse(readJson(bytes, place));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw notTheContract(place, `${issue?.path.join(".") || "document"}: ${issue?.message ?? "unreadable"}`);
}

function requireDistinct(names: readonly string[], what: string, place: ErrorPlace): void {
  if (new Set(names).size !== names.length) throw notTheContract(place, `the same ${what} twice`);
}

function notTheContract(place: ErrorPlace, what: string): RunvaultError {
  return new RunvaultError("not_a_gateway", `the document is not as the interface says: ${what}`, {
    place,
    hint: "Something else listens there, or the gateway's documents differ from the contract in proto/.",
  });
}

function conflict(place: ErrorPlace): RunvaultError {
  return new RunvaultError(
    "history_identity_conflict",
    "the document is about another run or instance than asked for",
    { place },
  );
}
