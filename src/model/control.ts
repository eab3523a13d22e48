import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  GetStatusResponseSchema,
  ListResourcesResponseSchema,
  QueryResponseSchema,
  ResourceContractSchema,
} from "../gen/example/gateway/v1/runtime_service_pb.ts";
import type { InstanceState } from "./instance-state.ts";
import type { TableName } from "./profile/table.ts";
import type { Nanoseconds } from "./time.ts";

export type LifecycleAction = "start" | "stop" | "restart";

/** The daemon that runs the instances. */
export interface DaemonState {
  readonly reachable: boolean;
  /** Empty while it is out of reach. */
  readonly version: string;
  /** The problem, for the operator; empty for none. */
  readonly message: string;
}

/** A check of the plane for the doctor. */
export interface DoctorCheck {
  /** What was checked. */
  readonly name: string;
  /** The problem, for the operator; empty if it passed. */
  readonly message: string;
  /** The affected instance, if it is just one. */
  readonly instanceId?: string | undefined;
}

export interface LogEntry {
  readonly time: Nanoseconds;
  readonly severity: "DEBUG" | "INFO" | "WARNING" | "ERROR";
  /** The line as written, without its end. */
  readonly text: string;
}

export type RuntimeStatus = MessageInitShape<typeof GetStatusResponseSchema>;
export type Catalog = MessageInitShape<typeof ListResourcesResponseSchema>;
export type ReadModel = MessageInitShape<typeof QueryResponseSchema>;
export type Contract = MessageInitShape<typeof ResourceContractSchema>;

/** Values of one resource that are delivered together. */
export interface LiveValue {
  readonly table: TableName;
  /** Canonical lines of the table, without line ends: one for EVENT, the whole value for SNAPSHOT and SAMPLED. */
  readonly rows: readonly string[];
  /** True for values from before the subscription: sent at the client's pace and never dropped. */
  readonly replayed: boolean;
}

/** A catalog entry that feeds subscriptions; several entries may share a key. */
export interface LiveFeed {
  readonly resourceKey: string;
  readonly contract: Contract;
  /** Fields whose values together identify what an UPSERT replaces, by their names in the row's message. */
  readonly identity: readonly string[];
  /**
   * The replay and then new values, until the runtime no longer has the run; throws if it is lost. Ends without an
   * error when the reader stops or the signal aborts.
   */
  values(signal: AbortSignal): AsyncIterable<LiveValue>;
}

/** Runs that a store keeps, for its metrics. */
export interface KeptRuns {
  /** Every state there is, the best first. */
  readonly states: readonly string[];
  readonly runs: readonly {
    readonly instanceId: string;
    readonly state: string;
    readonly committed: Nanoseconds;
  }[];
}

/** A figure that an instance is measured by. */
export interface Gauge {
  /** As in Prometheus: snake_case, unit last. */
  readonly name: string;
  readonly help: string;
  readonly samples: readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
}

/**
 * The control and live planes of a source's instances, independent of transports.
 *
 * Every method that names an instance throws `instance_not_found`; `unreachable` if the daemon or instance is,
 * `server_error` if it failed, and `capability_unavailable` with the capability if the plane or instance lacks it.
 */
export interface ControlPlane {
  /** The kind of store, such as simulator or archive. */
  readonly kind: string;
  /** Whether any instance could have live values to subscribe to. */
  readonly isLive: boolean;
  /** Never throws: an unreachable daemon is an answer. */
  daemon(): Promise<DaemonState>;
  /** Further checks of this plane's dependencies; absent if the daemon is all there is. */
  checks?(): Promise<readonly DoctorCheck[]>;
  /** The archived runs, as committed now; absent if nothing is archived. */
  keptRuns?(): Promise<KeptRuns>;
  /** Ordered by id. While the daemon is unreachable, as last known. */
  instances(): Promise<readonly InstanceState[]>;
  instance(instanceId: string): Promise<InstanceState>;
  /** Resolves once the action is accepted, which does not mean that it has happened. Throws `state_conflict`. */
  act(instanceId: string, action: LifecycleAction): Promise<void>;
  /** The last lines, oldest first. */
  log(instanceId: string, tail: number): Promise<readonly LogEntry[]>;
  /** The last lines and then new ones, until the signal; ends without an error. */
  followLog(instanceId: string, tail: number, signal: AbortSignal): Promise<AsyncIterable<LogEntry>>;
  /** Also for an instance that is out of reach. */
  status(instanceId: string): Promise<RuntimeStatus>;
  /** Entries in the order of their keys. */
  catalog(instanceId: string): Promise<Catalog>;
  /** Throws `resource_not_found` for an unknown path. */
  query(instanceId: string, path: string): Promise<ReadModel>;
  /** The feeds of a key. Throws `resource_not_found` for a key outside of the catalog. */
  feeds(instanceId: string, resourceKey: string): Promise<readonly LiveFeed[]>;
  gauges(instanceId: string): Promise<readonly Gauge[]>;
}
