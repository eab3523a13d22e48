import type { Resource } from "../gen/example/history/v1/history_service_pb.ts";

/** The four states of an instance; `instanceState` is derived from the others. */
export interface InstanceState {
  readonly instanceId: string;
  readonly project: { readonly name: string; readonly version: string };
  readonly desiredState: "RUNNING" | "STOPPED";
  readonly processState: "RUNNING" | "STOPPED" | "CRASHED";
  readonly runtimeState: "RUNNING" | "STOPPED" | "FAILED" | "UNKNOWN";
  readonly instanceState: "RUNNING" | "STOPPED" | "FAILED" | "DEGRADED";
  /** Empty when no run is known. */
  readonly currentRunId: string;
  /** Port of the instance's metrics; 0 when it has none. */
  readonly metricsPort: number;
}

/** What the control and live planes show of the instances behind a source. */
export interface ControlPlane {
  /** Null when the control plane is reachable, else what is wrong with it. */
  doctor(): Promise<string | null>;
  instances(): Promise<readonly InstanceState[]>;
  /** Live resources of an instance whose rows its current run records. */
  resources(instanceId: string): Promise<readonly Resource[]>;
}
