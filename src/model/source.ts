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

/** An instance that has history, with the runs the source names for it, oldest first. */
export interface InstanceEntry {
  readonly instanceId: string;
  readonly runIds: readonly string[];
  /** The one of them that it calls its latest, where its own list lacks it. */
  readonly latestBeside?: string | undefined;
}

/** A list as it was had. */
export interface Listed<T> extends ReadonlyArray<T> {
  /** What its source says of entries that could not be had; absent where it says nothing of the kind. */
  readonly rest?: ListRest | undefined;
}

export interface ListRest {
  /** What says so, in words. */
  readonly text: string;
  /** Entries that the whole list has at least. */
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
  /** Changes whenever any row of the run changes; undefined where the source has no such mark. */
  readonly storageVersion: string | undefined;
}

/** A run as a list names it. */
export interface ListedRun extends Omit<RunEntry, "started"> {
  /** Undefined where the list does not say. */
  readonly started: Nanoseconds | undefined;
  /** The entry as it came: the run's document `run`. Undefined where the source keeps that document apart. */
  readonly text: Uint8Array | undefined;
  /** Whether the entry says `final` or not, in so many words. */
  readonly saysFinal?: boolean | undefined;
  /** Why nothing but the id is known of it: its entry is not as the interface says. */
  readonly fault?: RunvaultError;
}

/** One of a source's ways to say which runs there are: the lists of one transport. */
export interface RunListing {
  /** What to call it, such as REST. */
  readonly by: string;
  /** The source's own clock, as it last told it; undefined, or absent, where it tells none. */
  now?(): Nanoseconds | undefined;
  instances(signal?: AbortSignal): Promise<Listed<InstanceEntry>>;
  /** The runs of an instance, oldest first; null where there is no such list. */
  runs(instanceId: string, signal?: AbortSignal): Promise<Listed<ListedRun> | null>;
  /** The run that the instance's own document calls its current one; null where it names none. */
  currentRun(instanceId: string, signal?: AbortSignal): Promise<string | null>;
}

/** What the source says it holds of one table of a run, within the bounds asked for. */
export interface TableFacts {
  readonly rows: bigint;
  /** Smallest and largest `ts_event`; undefined when there are no rows, unless the source tells them all the same. */
  readonly first: Nanoseconds | undefined;
  readonly last: Nanoseconds | undefined;
  readonly schemaFingerprint: string;
  /** True when the table will not grow any more. */
  readonly final: boolean;
  /**
   * The row hash (see row-hash.ts) of exactly the rows counted, in the fields that `schemaFingerprint` names. Undefined
   * where none was asked for, and where the source has none.
   */
  readonly rowHash?: bigint | undefined;
}

/** What facts are asked for beyond counts of all tables. */
export interface FactsRequest {
  /** Also the row hashes: a scan of all rows within the bounds, which a source may refuse as too much. Default false. */
  readonly withHash?: boolean | undefined;
  /** Only this table's. Default: all. */
  readonly table?: TableName | undefined;
}

/** Facts by table; a table the source holds no history model for is not in the map. */
export interface StorageFacts extends ReadonlyMap<TableName, TableFacts> {
  /** The document they were read from, as it came; undefined where the source keeps documents apart. */
  readonly text?: Uint8Array | undefined;
}

/** A run as its rows are asked for. */
export interface AskedRun extends RunRef {
  /**
   * True where no row of the run is to come any more, by all that is said of its end. A source that joins pages which move
   * when rows come takes a window without an end, or with one that is still ahead, only then. Default: false.
   */
  readonly final?: boolean | undefined;
}

/** What one body of an answer came to on the wire. */
export interface WireBody {
  /** Compressed, where it came so. */
  readonly bytes: number;
  /** From its first byte to its last, less the time in which the reader held it back. */
  readonly ms: number;
}

export interface RowRequest extends AskedRun, TimeBounds {
  readonly table: TableName;
  /** Most rows to answer with; the source may answer with fewer without saying so. */
  readonly limit?: number | undefined;
  readonly filters?: Readonly<Partial<Record<FilterName, string>>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * Judges how many rows the answer says that it has, where the source knows it: told while an answer without bounds goes
   * on, and once more, with the rows that came, of any that ended with fewer. Default: an answer that ends with fewer throws
   * `rows_missing`.
   */
  readonly onTotal?: ((total: bigint, came?: number) => void) | undefined;
  /** Most rows of one page, of `pagedRows` over a wire. */
  readonly pageRows?: number | undefined;
  /** Hears of each body that came whole, of a source that has rows from a wire. */
  readonly onBody?: ((body: WireBody) => void) | undefined;
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
  /** The source's own clock, as it last told it; undefined, or absent, where it tells none. */
  now?(): Nanoseconds | undefined;
  instances(signal?: AbortSignal): Promise<readonly InstanceEntry[]>;
  /** The runs of an instance, oldest first; null where the source does not list runs. */
  runs(instanceId: string, signal?: AbortSignal): Promise<readonly RunEntry[] | null>;
  /**
   * Every way to learn which runs there are, the one that `instances` and `runs` prefer first, so that they can be held
   * against each other. Absent where those two are all there is.
   */
  listings?(signal?: AbortSignal): Promise<readonly RunListing[]>;
  /** Row counts within the bounds, and row hashes where they are asked for; null where the source has no storage facts. */
  facts(
    run: RunRef,
    bounds: TimeBounds,
    signal?: AbortSignal,
    asked?: FactsRequest,
  ): Promise<StorageFacts | null>;
  /**
   * The same facts by another way than `facts` takes, such as a gateway's other transport, to hold one against the
   * other; null where that way has none. Absent, or null, where there is one way alone.
   */
  otherFacts?(
    run: RunRef,
    bounds: TimeBounds,
    signal?: AbortSignal,
    asked?: FactsRequest,
  ): Promise<StorageFacts | null>;
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
  /**
   * Sends later requests over new connections: behind a balancer, another node may answer. Absent where there are no
   * connections.
   */
  reconnect?(): void;
  /**
   * Whether requests for rows of a run's table were answered with 204 No Content, where nothing shows that the source means by it
   * that there are none. Absent where it never answers so.
   */
  isNoContentUnclear?(run: RunRef, table: TableName): boolean;
  /** What differs of one table's route from the contract; absent, or undefined, where nothing does. */
  traits?(table: TableName): RouteTraits | undefined;
  /**
   * The tables it can be asked for, and those that it is known not to have; absent where it may have any. `by` is what says
   * so, such as a profile's file.
   */
  readonly described?:
    | {
        readonly tables: readonly TableName[];
        readonly none: readonly TableName[];
        readonly by?: string | undefined;
      }
    | undefined;
}
