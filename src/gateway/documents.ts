import { z } from "zod";
import { type ErrorPlace, RunvaultError } from "../model/error.ts";
import { excessOf, parseJson } from "../model/outside-json.ts";
import { isTableName, type TableName } from "../model/profile/table.ts";
import type {
  InstanceEntry,
  ListedRun,
  RunEntry,
  RunRef,
  StorageFacts,
  TableFacts,
} from "../model/source.ts";
import { shownId } from "../model/text/id-fault.ts";
import { int64Max, int64Min, type Nanoseconds } from "../model/time.ts";
import { Turns } from "../model/turns.ts";
import { elementTexts } from "../row/wire/element-texts.ts";
import { documentMaxBytes } from "./http/http-session.ts";
import { type JsonNode, readJsonText } from "./profile/check/json-node.ts";
import { judgeFields, type ListForm, listIn } from "./rest/list-document.ts";
import type { UnknownFields } from "./rpc/unknown-fields.ts";

// A 64-bit integer is a string on the wire: a JSON number would already have been rounded to a double.
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

/** Decimal digits of an unsigned 128-bit integer; empty for none. */
const checksum = z
  .string()
  .regex(/^(\d{1,39})?$/, "expected an unsigned 128-bit integer as a string")
  .default("")
  .transform((text) => (text === "" ? undefined : BigInt(text)))
  .refine((value) => value === undefined || value < 1n << 128n, "outside the range of 128 bits");

// an odd id affects only its own run or instance, where it is read: see model/id-fault.ts
const id = z.string().min(1);
const runId = id.refine((value) => value !== "current", "current is a reserved word, not a run id");

const instanceEntry = z.object({
  instance_id: id,
  // its entries are checked one by one
  run_ids: z.custom<readonly unknown[]>(Array.isArray, "Invalid input: expected array").optional(),
  latest_run_id: z.union([z.literal(""), runId]).default(""),
});

const runIdentity = z.looseObject({ run_id: runId, instance_id: id });
const run = z.object({
  status: z.string().max(64),
  ts_started: int64,
  ts_ended: int64,
  final: z.boolean(),
  storage_version: z.string().max(1024).default(""),
});
/** Replaces an entry that cannot be read. */
const unreadable = {
  status: "",
  started: 0n,
  ended: undefined,
  final: false,
  storageVersion: undefined,
  text: undefined,
};

/** How the three lists are judged if they have fields that these schemas ignore. */
const forms = {
  instances: {
    what: "the list of instances",
    list: "instances",
    keys: ["instance_id", "run_ids", "latest_run_id"],
    needed: [
      { keys: ["instance_id"], holds: ["text"] },
      { keys: ["run_ids", "latest_run_id"], holds: ["several"] },
    ],
  },
  runs: {
    what: "the list of runs",
    list: "runs",
    keys: ["run_id", "instance_id", "status", "ts_started", "ts_ended", "final", "storage_version"],
    needed: [
      { keys: ["run_id"], holds: ["text"] },
      { keys: ["instance_id"], holds: ["text"] },
      { keys: ["status"], holds: ["text"] },
    ],
  },
  facts: {
    what: "the storage document",
    list: "tables",
    keys: ["table", "rows", "min_ts_event", "max_ts_event", "schema_fingerprint", "final", "row_checksum"],
    needed: [
      { keys: ["table"], holds: ["text"] },
      { keys: ["rows"], holds: ["number"] },
    ],
  },
} as const satisfies Record<string, ListForm>;
const instance = z.looseObject({ instanceId: id, currentRunId: z.string().default("") });

const tableFacts = z.object({
  table: z.string().min(1).max(256),
  rows: uint64,
  min_ts_event: int64,
  max_ts_event: int64,
  // it may name every field of a wide table
  schema_fingerprint: z.string().max(16_384).default(""),
  final: z.boolean(),
  row_checksum: checksum,
});

/** Gets the document around a list, without the list: fields about pages and totals. */
export type OnAround = (around: JsonNode | undefined) => void;

/** Reads /history/instances. An entry that names only its latest run has that one. Throws `not_a_gateway`. */
export async function readInstances(
  bytes: Uint8Array,
  place: ErrorPlace,
  unknown: UnknownFields,
  onAround?: OnAround,
): Promise<readonly InstanceEntry[]> {
  const turns = new Turns();
  const listed = await parseList(forms.instances, instanceEntry, bytes, place, unknown, turns, onAround);
  const entries = await turns.map(listed, async (entry, i) => ({
    ...entry,
    hasList: entry.run_ids !== undefined,
    run_ids: await eachChecked(runId, entry.run_ids ?? [], `instances.${i}.run_ids`, place, turns),
  }));
  await requireDistinct(entries, ({ instance_id }) => instance_id, "instance", place, turns);
  return await turns.map(entries, async ({ instance_id, run_ids, hasList, latest_run_id }) => {
    await requireDistinct(run_ids, (id) => id, "run", place, turns);
    const missing = latest_run_id !== "" && !run_ids.includes(latest_run_id);
    return {
      instanceId: instance_id,
      runIds: missing ? [...run_ids, latest_run_id] : run_ids,
      ...(missing && hasList ? { latestBeside: latest_run_id } : {}),
    };
  });
}

/**
 * Reads /history/runs of an instance. An entry that names its run but is otherwise invalid, or of another instance,
 * affects only that run. Throws `not_a_gateway`.
 */
export async function readRuns(
  bytes: Uint8Array,
  instanceId: string,
  place: ErrorPlace,
  unknown: UnknownFields,
  onAround?: OnAround,
): Promise<readonly ListedRun[]> {
  const turns = new Turns();
  const entries = await parseList(forms.runs, runIdentity, bytes, place, unknown, turns, onAround);
  await requireDistinct(entries, ({ run_id }) => run_id, "run", place, turns);
  const texts = await elementTexts(textOf(bytes, place), "runs", turns);
  const readEntry = (entry: z.output<typeof runIdentity>, index: number): ListedRun => {
    const ids = { instanceId, runId: entry.run_id };
    const here = { ...place, run: entry.run_id };
    if (entry.instance_id !== instanceId) {
      const named = { instanceId: entry.instance_id, runId: entry.run_id };
      return { ...ids, ...unreadable, fault: otherThanAsked(place, named).concerning("run") };
    }
    const read = run.safeParse(entry);
    if (!read.success)
      return { ...ids, ...unreadable, fault: unlikeTheContract(here, read.error).concerning("run") };
    const { status, ts_started, ts_ended, final, storage_version } = read.data;
    return {
      ...ids,
      status,
      started: ts_started,
      ended: ts_ended === 0n ? undefined : ts_ended,
      final,
      storageVersion: storage_version === "" ? undefined : storage_version,
      text: Buffer.from(texts[index]!),
    };
  };
  return await turns.map(entries, readEntry, bytes.byteLength / entries.length);
}

/**
 * The current run by an instance's document; null if it names none. Throws `not_a_gateway`, and
 * `history_identity_conflict` for another instance's document.
 */
export function readCurrentRun(bytes: Uint8Array, place: ErrorPlace): string | null {
  const { instanceId, currentRunId } = checked(instance, readJson(bytes, place), place);
  if (instanceId !== place.instance) throw otherThanAsked(place, { instanceId });
  return currentRunId === "" || currentRunId === "current" ? null : currentRunId;
}

/** A list's runs without their original text. Throws for an entry that cannot be read. */
export async function withoutText(runs: readonly ListedRun[] | null): Promise<readonly RunEntry[] | null> {
  if (runs === null) return null;
  return await new Turns().map(runs, (run) => {
    const { text: _, started = 0n, ...entry } = readable(run);
    return { ...entry, started };
  });
}

/** A run's entry as its list has it; null if the run is not listed. Throws if it cannot be read. */
export function ownText(runs: readonly ListedRun[] | null, { runId }: RunRef): Uint8Array | null {
  const entry = runs?.find((entry) => entry.runId === runId);
  return (entry && readable(entry).text) ?? null;
}

function readable(entry: ListedRun): ListedRun {
  if (entry.fault !== undefined) throw entry.fault;
  return entry;
}

/**
 * Reads /history/storage. Leaves out tables that runvault does not know, and all but `only` if given. Throws
 * `not_a_gateway`, also for a table in another spelling, whose rows would be counted in addition.
 */
export async function readFacts(
  bytes: Uint8Array,
  place: ErrorPlace,
  unknown: UnknownFields,
  only?: TableName,
): Promise<StorageFacts> {
  const turns = new Turns();
  const entries = await parseList(forms.facts, tableFacts, bytes, place, unknown, turns);
  await requireDistinct(entries, ({ table }) => table, "table", place, turns);
  const known = new Map<TableName, TableFacts>();
  for (const entry of entries) {
    const { table, rows, min_ts_event, max_ts_event, schema_fingerprint, final, row_checksum } = entry;
    const plain = table.toLowerCase().replaceAll("-", "_");
    if (plain !== table && isTableName(plain))
      throw notTheContract(place, `tables: ${JSON.stringify(table)} is another spelling of ${plain}`);
    if (!isTableName(table) || table !== (only ?? table)) continue;
    if (rows > 0n && min_ts_event > max_ts_event) {
      throw notTheContract(place, `tables: the min_ts_event of ${table} is after its max_ts_event`);
    }
    known.set(table, {
      rows,
      ...(rows === 0n ? endsOfNone(min_ts_event, max_ts_event) : { first: min_ts_event, last: max_ts_event }),
      schemaFingerprint: schema_fingerprint,
      final,
      ...(row_checksum === undefined ? {} : { rowHash: row_checksum }),
    });
  }
  return Object.defineProperty(known, "text", { value: bytes });
}

/** The ends in facts for zero rows; undefined for placeholders such as zero or the ends of int64. */
export function endsOfNone(first: Nanoseconds | undefined, last: Nanoseconds | undefined) {
  const areTold = first !== undefined && last !== undefined && first > 0n && last >= first && last < int64Max;
  return areTold ? { first, last } : { first: undefined, last: undefined };
}

/**
 * Checks a free-form document: it must be a JSON object, and if it names a run or instance, the right one. Throws
 * `not_a_gateway` or `history_identity_conflict`.
 */
export function checkRunDocument(bytes: Uint8Array, run: RunRef, place: ErrorPlace): void {
  const { run_id, instance_id } = checked(
    z.looseObject({ run_id: z.string().optional(), instance_id: z.string().optional() }),
    readJson(bytes, place),
    place,
  );
  if ((run_id ?? run.runId) !== run.runId || (instance_id ?? run.instanceId) !== run.instanceId) {
    throw otherThanAsked(place, {
      runId: run_id ?? run.runId,
      instanceId: instance_id ?? run.instanceId,
    });
  }
}

/**
 * The JSON value of a document. Throws `not_a_gateway` for invalid UTF-8 or JSON, and `limit_exceeded` for one that
 * would need far more memory than its size.
 */
export function readJson(bytes: Uint8Array, place: ErrorPlace): unknown {
  const text = textOf(bytes, place);
  const excess = excessOf(bytes);
  if (excess !== null)
    throw new RunvaultError("limit_exceeded", `the gateway sent a document that ${excess}`, { place });
  try {
    return parseJson(text);
  } catch {
    // the parser's own message quotes the document, which may contain anything
    throw notTheContract(place, "not JSON");
  }
}

function textOf(bytes: Uint8Array, place: ErrorPlace): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw notTheContract(place, "not JSON");
  }
}

/** A list's entries, each checked by its schema. The text is parsed without interruption. */
async function parseList<T extends z.ZodType>(
  form: ListForm,
  schema: T,
  bytes: Uint8Array,
  place: ErrorPlace,
  unknown: UnknownFields,
  turns: Turns,
  onAround?: OnAround,
): Promise<z.output<T>[]> {
  const json = readJson(bytes, place);
  if (turns.isDue(bytes.byteLength)) await turns.next();
  const list = listIn(form, json);
  if ((list?.length ?? 0) > mostEntries) {
    throw notTheContract(place, `${form.list}: more than ${mostEntries} entries`);
  }
  await judgeFields(form, json, place, unknown, turns);
  onAround?.(readJsonText(JSON.stringify(aroundList(json, form.list))));
  // throws if it is not a list
  const { [form.list]: entries = [] } =
    list === undefined
      ? checked(z.object({ [form.list]: z.array(schema) }), json, place)
      : { [form.list]: list };
  return await eachChecked(schema, entries, form.list, place, turns);
}

/** The members of a document besides its list, without long ones. */
function aroundList(json: unknown, list: string): object {
  const isShort = (value: unknown) =>
    typeof value !== "object" || value === null || Object.keys(value).length <= 32;
  const members = Object.entries(json ?? {}).filter(([name, value]) => name !== list && isShort(value));
  return Object.fromEntries(members.slice(0, 1000));
}

/** Most entries of a list: the shortest possible entries fill the largest document. */
const mostEntries = documentMaxBytes / 64;

/** Checks values one by one up to the first failure: a list may have millions, with an issue for each. */
async function eachChecked<T extends z.ZodType>(
  schema: T,
  values: readonly unknown[],
  path: string,
  place: ErrorPlace,
  turns: Turns,
): Promise<z.output<T>[]> {
  const results: z.output<T>[] = [];
  for (const [i, value] of values.entries()) {
    if (turns.isDue(0)) await turns.next();
    const parsed = schema.safeParse(withoutNulls(value));
    if (parsed.success) {
      results.push(parsed.data);
      continue;
    }
    const [issue] = parsed.error.issues;
    throw notTheContract(
      place,
      `${[path, i, ...(issue?.path ?? [])].join(".")}: ${issue?.message ?? "unreadable"}`,
    );
  }
  return results;
}

/** Drops an object's null members: in protobuf JSON these count as absent. */
function withoutNulls(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value);
  return members.some(([, member]) => member === null)
    ? Object.fromEntries(members.filter(([, member]) => member !== null))
    : value;
}

function checked<T extends z.ZodType>(schema: T, json: unknown, place: ErrorPlace): z.output<T> {
  const parsed = schema.safeParse(withoutNulls(json));
  if (parsed.success) return parsed.data;
  throw unlikeTheContract(place, parsed.error);
}

function unlikeTheContract(place: ErrorPlace, { issues: [issue] }: z.ZodError): RunvaultError {
  return notTheContract(place, `${issue?.path.join(".") || "document"}: ${issue?.message ?? "unreadable"}`);
}

async function requireDistinct<T>(
  entries: readonly T[],
  nameOf: (entry: T) => string,
  what: string,
  place: ErrorPlace,
  turns: Turns,
): Promise<void> {
  const seen = new Set<string>();
  for (const entry of entries) {
    seen.add(nameOf(entry));
    if (turns.isDue(0)) await turns.next();
  }
  if (seen.size !== entries.length) throw notTheContract(place, `the same ${what} appears twice`);
}

function notTheContract(place: ErrorPlace, what: string): RunvaultError {
  return new RunvaultError("not_a_gateway", `the document does not follow the interface: ${what}`, {
    place,
    // nothing else is read
    status: 200,
    hint: "Check --gateway or RUNVAULT_GATEWAY: something else may be listening there, or its documents differ from the contract in proto/.",
  });
}

/** The error for a document about another run or instance than the requested one; `named` is what it names. */
export function otherThanAsked(place: ErrorPlace, named: Partial<RunRef>): RunvaultError {
  const words = (run = "", instance = "") =>
    `${run === "" ? "" : `run ${shownId(run)} of `}${instance === "" ? "no instance" : `instance ${shownId(instance)}`}`;
  const asked = words(named.runId === undefined ? "" : place.run, place.instance);
  return new RunvaultError(
    "history_identity_conflict",
    `the document names ${words(named.runId, named.instanceId)}, but ${asked} was asked for`,
    {
      place,
      hint: "Ask the gateway's operator why it answers for another run or instance. Nothing of it was archived.",
    },
  );
}
