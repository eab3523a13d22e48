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
  /** What is wrong, for the operator; empty when nothing is. */
  readonly message: string;
}

/** Something that the plane looks at when the doctor is asked. */
export interface DoctorCheck {
  /** What was checked. */
  readonly name: string;
  /** What is wrong, for the operator; empty when it passed. */
  readonly message: string;
  /** Whose trouble it is, where it is one instance's alone. */
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

/** What is delivered at once of one resource. */
export interface LiveValue {
  readonly table: TableName;
  /** Canonical lines of the table, without line ends: one for EVENT, the whole value for SNAPSHOT and SAMPLED. */
  readonly rows: readonly string[];
  /** True for what was there before the subscription: it is sent at the client's pace and never dropped. */
  readonly replayed: boolean;
}

/** A catalog entry that a subscription is fed by; several entries may share a key. */
export interface LiveFeed {
  readonly resourceKey: string;
  readonly contract: Contract;
  /** Fields whose values together say what an UPSERT replaces, by their names in the row's message. */
  readonly identity: readonly string[];
  /**
   * The replay and then the values as they come, until the runtime no longer has the run; throws where it is lost.
   * Whoever stops reading ends it, and so does the signal, without an error.
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
 * The control and live planes of the instances behind a source. It knows nothing of how it is asked.
 *
 * Every method that names an instance throws `instance_not_found`; where the daemon or the instance is out of reach
 * `unreachable`, where it failed `server_error`; where the plane or the instance can't do something
 * `capability_unavailable` with the capability.
 */
export interface ControlPlane {
  /** What is behind it, such as simulator or archive. */
  readonly kind: string;
  /** Whether any instance could have live values to subscribe to. */
  readonly isLive: boolean;
  /** Never throws: a daemon out of reach is an answer. */
  daemon(): Promise<DaemonState>;
  /** What else depends on this plane, looked at now; absent where the daemon is all there is. */
  checks?(): Promise<readonly DoctorCheck[]>;
  /** The runs that are kept here, as committed now; absent where nothing is archived. */
  keptRuns?(): Promise<KeptRuns>;
  /** In the order of their ids. While the daemon is out of reach, as last known. */
  instances(): Promise<readonly InstanceState[]>;
  instance(instanceId: string): Promise<InstanceState>;
  /** Resolves once the action is accepted, which proves nothing more. Throws `state_conflict`. */
  act(instanceId: string, action: LifecycleAction): Promise<void>;
  /** The last lines, oldest first. */
  log(instanceId: string, tail: number): Promise<readonly LogEntry[]>;
  /** The last lines and then those to come, until the signal; they end without an error. */
  followLog(instanceId: string, tail: number, signal: AbortSignal): Promise<AsyncIterable<LogEntry>>;
  /** An instance out of reach has a status too. */
  status(instanceId: string): Promise<RuntimeStatus>;
  /** Entries in the order of their keys. */
  catalog(instanceId: string): Promise<Catalog>;
  /** Throws `resource_not_found` for a path that the instance does not have. */
  query(instanceId: string, path: string): Promise<ReadModel>;
  /** The feeds of a key. Throws `resource_not_found` for a key that is not in the catalog. */
  feeds(instanceId: string, resourceKey: string): Promise<readonly LiveFeed[]>;
  gauges(instanceId: string): Promise<readonly Gauge[]>;
}
