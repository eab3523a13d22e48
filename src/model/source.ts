import type { AcceptedRows, RowAnswer } from "./row-answer.ts";
import type { FilterName, TableName } from "./table.ts";
import type { Nanoseconds, TimeBounds } from "./time.ts";

/** One execution of one instance. Both ids are exact: never empty, never the word `current`. */
export interface RunRef {
  readonly instanceId: string;
  readonly runId: string;
}

/** An instance that has history, with the runs the source names for it, oldest first. */
export interface InstanceEntry {
  readonly instanceId: string;
  readonly runIds: readonly string[];
}

export interface RunEntry extends RunRef {
  /** RUNNING, FINISHED or FAILED. */
  readonly status: string;
  readonly started: Nanoseconds;
  /** Undefined while the run goes on. */
  readonly ended: Nanoseconds | undefined;
  /** True when no row will be added any more. */
  readonly final: boolean;
  /** Changes whenever any row of the run changes; undefined where the source has no such mark. */
  readonly storageVersion: string | undefined;
}

/** What the source says it holds of one table of a run, within the bounds asked for. */
export interface TableFacts {
  readonly rows: bigint;
  /** Smallest and largest `ts_event`; undefined when there are no rows. */
  readonly first: Nanoseconds | undefined;
  readonly last: Nanoseconds | undefined;
  readonly schemaFingerprint: string;
  /** True when the table will not grow any more. */
  readonly final: boolean;
}

/** Facts by table; a table the source holds no history model for is not in the map. */
export type StorageFacts = ReadonlyMap<TableName, TableFacts>;

export interface RowRequest extends RunRef, TimeBounds {
  readonly table: TableName;
  /** Most rows to answer with; the source may answer with fewer without saying so. */
  readonly limit?: number | undefined;
  readonly filters?: Readonly<Partial<Record<FilterName, string>>> | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Documents of a run, stored and served as the bytes they came as. */
export const documentKinds = ["instance", "run", "summary", "resources", "facts"] as const;
export type DocumentKind = (typeof documentKinds)[number];

/**
 * Anything that holds history: a gateway, the simulator, an archive.
 *
 * Every method throws a RunvaultError, after the retries the source does by itself; `signal` ends it early.
 */
export interface HistorySource extends AsyncDisposable {
  /** Where it is, for messages and the manifest; free of secrets. */
  readonly label: string;
  instances(signal?: AbortSignal): Promise<readonly InstanceEntry[]>;
  /** The runs of an instance, oldest first; null where the source does not list runs. */
  runs(instanceId: string, signal?: AbortSignal): Promise<readonly RunEntry[] | null>;
  /** Row counts within the bounds; null where the source has no storage facts. */
  facts(run: RunRef, bounds: TimeBounds, signal?: AbortSignal): Promise<StorageFacts | null>;
  /** A document's bytes; null where the source does not have it. */
  document(run: RunRef, kind: DocumentKind, signal?: AbortSignal): Promise<Uint8Array | null>;
  /**
   * The rows of one answer as NDJSON bytes in key order, cut into chunks anywhere. The iteration ends when the source
   * ended its answer whole, and throws (`stream_cut`, `timeout`, …) when it did not. It never asks again by itself
   * once the first byte is out: what came is the caller's. Throws `history_unavailable` when the run has no such table.
   */
  rows(request: RowRequest): AsyncIterable<Uint8Array>;
  /**
   * The same rows page by page, past any cap on the rows of one answer: slower, for where `rows` comes short. Absent, or
   * throwing `route_not_found`, where the source has no such way, or its `rows` has no cap in the first place.
   */
  pagedRows?(request: RowRequest): AsyncIterable<Uint8Array>;
  /**
   * The same rows in another form, as they are stored, or with their number, where the source can do better than chunks
   * of NDJSON. Throws as `rows` does. Absent, or null, where `rows` is all there is.
   */
  answer?(request: RowRequest, accepted: AcceptedRows): Promise<RowAnswer | null>;
}
