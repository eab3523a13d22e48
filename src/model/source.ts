import type { RunvaultError } from "./error.ts";
import type { FilterName, TableName } from "./profile/table.ts";
import type { RouteTraits } from "./route-traits.ts";
import type { AcceptedRows, RowAnswer } from "./row-answer.ts";
import type { Nanoseconds, TimeBounds } from "./time.ts";

/** One execution of one instance. Both ids are exact: never empty, never the word `current`. */
export interface RunRef {
  readonly instanceId: string;
  readonly runId: string;
}

/** An instance with history, with the runs that the source names for it, oldest first. */
export interface InstanceEntry {
  readonly instanceId: string;
  readonly runIds: readonly string[];
  /** Its latest run, if its own list lacks it. */
  readonly latestBeside?: string | undefined;
}

/** A list, and what it may lack. */
export interface Listed<T> extends ReadonlyArray<T> {
  /** What the source says about entries that it could not list; absent if it says nothing. */
  readonly rest?: ListRest | undefined;
}

export interface ListRest {
  /** How this is known, in words. */
  readonly text: string;
  /** Least number of entries of the complete list. */
  readonly least: number;
}

export interface RunEntry extends RunRef {
  /** RUNNING, FINISHED or FAILED. */
  readonly status: string;
  readonly started: Nanoseconds;
  /** Undefined while the run goes on. */
  readonly ended: Nanoseconds | undefined;
  /** True when no row will be added any more. */
  readonly final: boolean;
  /** Changes whenever any row of the run changes; undefined if the source has none. */
  readonly storageVersion: string | undefined;
}

/** A run as a list names it. */
export interface ListedRun extends Omit<RunEntry, "started"> {
  /** Undefined if the list does not say. */
  readonly started: Nanoseconds | undefined;
  /** The original entry: the run's document `run`. Undefined if the source keeps that document elsewhere. */
  readonly text: Uint8Array | undefined;
  /** Whether the entry explicitly says whether it is `final`. */
  readonly saysFinal?: boolean | undefined;
  /** Why only its id is known: its entry does not follow the interface. */
  readonly fault?: RunvaultError;
}

/** One way to list a source's runs: the lists of one transport. */
export interface RunListing {
  /** What to call it, such as REST. */
  readonly by: string;
  /** The source's own clock, by its last answer; undefined or absent if unknown. */
  now?(): Nanoseconds | undefined;
  instances(signal?: AbortSignal): Promise<Listed<InstanceEntry>>;
  /** The runs of an instance, oldest first; null if there is no such list. */
  runs(instanceId: string, signal?: AbortSignal): Promise<Listed<ListedRun> | null>;
  /** The run that the instance's own document calls its current one; null if it names none. */
  currentRun(instanceId: string, signal?: AbortSignal): Promise<string | null>;
}

/** The source's facts about one table of a run, within the requested bounds. */
export interface TableFacts {
  readonly rows: bigint;
  /** Smallest and largest `ts_event`; undefined without rows, unless the source gives them anyway. */
  readonly first: Nanoseconds | undefined;
  readonly last: Nanoseconds | undefined;
  readonly schemaFingerprint: string;
  /** True when the table will not grow any more. */
  readonly final: boolean;
  /**
   * The row hash (see row-hash.ts) of exactly the counted rows, over the fields in `schemaFingerprint`. Undefined if
   * not requested, or if the source has none.
   */
  readonly rowHash?: bigint | undefined;
}

/** A request for facts, beyond counts of all tables. */
export interface FactsRequest {
  /** Also row hashes: a scan of all rows within the bounds, which a source may refuse as too much. Default false. */
  readonly withHash?: boolean | undefined;
  /** Only this table's. Default: all. */
  readonly table?: TableName | undefined;
}

/** Facts by table; tables that the source does not know are missing from the map. */
export interface StorageFacts extends ReadonlyMap<TableName, TableFacts> {
  /** The original document; undefined if the source keeps documents elsewhere. */
  readonly text?: Uint8Array | undefined;
}

/** A run whose rows are requested. */
export interface AskedRun extends RunRef {
  /**
   * True if everything says that no more rows of the run will come. A source with pages that shift when rows arrive
   * reads a window that is still open only then. Default: false.
   */
  readonly final?: boolean | undefined;
}

/** Size and speed of one answer's body on the wire. */
export interface WireBody {
  /** Before decompression. */
  readonly bytes: number;
  /** Time from its first byte to its last, without pauses by the reader. */
  readonly ms: number;
}

export interface RowRequest extends AskedRun, TimeBounds {
  readonly table: TableName;
  /** Most rows in the answer; the source may return fewer without saying so. */
  readonly limit?: number | undefined;
  readonly filters?: Readonly<Partial<Record<FilterName, string>>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * Judges the total that an answer announces, if the source knows it. Called during an unbounded answer, and again,
   * with the rows received, after any answer that ended with fewer. Default: such an answer throws `rows_missing`.
   */
  readonly onTotal?: ((total: bigint, came?: number) => void) | undefined;
  /** Most rows of one page, for `pagedRows` over a network. */
  readonly pageRows?: number | undefined;
  /** Called for each complete body, by a source that reads rows from a network. */
  readonly onBody?: ((body: WireBody) => void) | undefined;
}

/** Documents of a run, stored and served with their original bytes. */
export const documentKinds = ["instance", "run", "summary", "resources", "facts"] as const;
export type DocumentKind = (typeof documentKinds)[number];

/**
 * Anything with history: a gateway, the simulator, an archive.
 *
 * Every method throws a RunvaultError, after the source's own retries; `signal` ends it early.
 */
export interface HistorySource extends AsyncDisposable {
  /** Its place, for messages and the manifest; without secrets. */
  readonly label: string;
  /** The source's own clock, by its last answer; undefined or absent if unknown. */
  now?(): Nanoseconds | undefined;
  instances(signal?: AbortSignal): Promise<readonly InstanceEntry[]>;
  /** The runs of an instance, oldest first; null if the source does not list runs. */
  runs(instanceId: string, signal?: AbortSignal): Promise<readonly RunEntry[] | null>;
  /**
   * All ways to list runs, the one that `instances` and `runs` prefer first, for comparison. Absent if there are only
   * those two.
   */
  listings?(signal?: AbortSignal): Promise<readonly RunListing[]>;
  /** Row counts within the bounds, and row hashes if requested; null if the source has no storage facts. */
  facts(
    run: RunRef,
    bounds: TimeBounds,
    signal?: AbortSignal,
    asked?: FactsRequest,
  ): Promise<StorageFacts | null>;
  /**
   * The same facts by another way, such as a gateway's other transport, for comparison; null if that way has none.
   * Absent or null if there is only one way.
   */
  otherFacts?(
    run: RunRef,
    bounds: TimeBounds,
    signal?: AbortSignal,
    asked?: FactsRequest,
  ): Promise<StorageFacts | null>;
  /** A document's bytes; null if the source does not have it. */
  document(run: RunRef, kind: DocumentKind, signal?: AbortSignal): Promise<Uint8Array | null>;
  /**
   * The rows of one answer as NDJSON bytes in key order, in arbitrary chunks. The iteration ends if the source
   * completed its answer, and otherwise throws (`stream_cut`, `timeout`, …). It never retries once the first byte is
   * out: rows received belong to the caller. Throws `history_unavailable` if the run has no such table.
   */
  rows(request: RowRequest): AsyncIterable<Uint8Array>;
  /**
   * The same rows page by page, beyond any cap on one answer: slower, for when `rows` returns too few. Absent, or throws
   * `route_not_found`, if the source has no pages, or no cap.
   */
  pagedRows?(request: RowRequest): AsyncIterable<Uint8Array>;
  /**
   * The same rows in another format, as stored, or with their number, if the source can do better than NDJSON chunks.
   * Throws like `rows`. Absent or null if there is only `rows`.
   */
  answer?(request: RowRequest, accepted: AcceptedRows): Promise<RowAnswer | null>;
  /**
   * Sends later requests over new connections: behind a load balancer, another node may answer. Absent without
   * connections.
   */
  reconnect?(): void;
  /**
   * Whether requests for a table's rows were answered with 204 No Content and nothing shows that this means no rows.
   * Absent if it never answers so.
   */
  isNoContentUnclear?(run: RunRef, table: TableName): boolean;
  /** How a table's route differs from the contract; absent or undefined if it does not. */
  traits?(table: TableName): RouteTraits | undefined;
  /**
   * The tables that can be requested, and those that it is known not to have; absent if unknown. `by` says where that
   * comes from, such as a profile's file.
   */
  readonly described?:
    | {
        readonly tables: readonly TableName[];
        readonly none: readonly TableName[];
        readonly by?: string | undefined;
      }
    | undefined;
}
