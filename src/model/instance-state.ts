export type DesiredState = "RUNNING" | "STOPPED";
export type ProcessState = "RUNNING" | "STOPPED" | "CRASHED";
/** UNKNOWN while the runtime is out of reach. */
export type RuntimeState = "RUNNING" | "STOPPED" | "FAILED" | "UNKNOWN";

/** An instance's facts, without the derived state. */
export interface InstanceFacts {
  readonly instanceId: string;
  readonly project: { readonly name: string; readonly version: string };
  readonly desiredState: DesiredState;
  readonly processState: ProcessState;
  readonly runtimeState: RuntimeState;
  /** Runtime status, resources and queries answer. */
  readonly runtimeAnswers: boolean;
  /** Subscriptions are accepted. */
  readonly takesSubscriptions: boolean;
  /** Empty when no run is known. */
  readonly currentRunId: string;
  /** Port of the instance's metrics; 0 when it has none. */
  readonly metricsPort: number;
}

/** The four states of an instance. */
export interface InstanceState extends InstanceFacts {
  readonly instanceState: "RUNNING" | "STOPPED" | "FAILED" | "DEGRADED";
}

/** Derives the overall state: FAILED if something failed, DEGRADED if the three states otherwise disagree. */
export function instanceStateOf(facts: InstanceFacts): InstanceState {
  const { desiredState, processState, runtimeState } = facts;
  const failed = processState === "CRASHED" || runtimeState === "FAILED";
  const agree = desiredState === processState && desiredState === runtimeState;
  return { ...facts, instanceState: failed ? "FAILED" : agree ? desiredState : "DEGRADED" };
}

export interface Health {
  readonly classification: "HEALTHY" | "DEGRADED" | "FAILED" | "UNKNOWN";
  /** Empty when healthy. */
  readonly reasons: readonly string[];
}

/** How an operator should look at an instance. */
export function healthOf(instance: InstanceState): Health {
  const { desiredState, processState, runtimeState, instanceState } = instance;
  const reasons: string[] = [];
  if (processState === "CRASHED") reasons.push("the process crashed");
  else if (processState !== desiredState)
    reasons.push(`the process is ${processState} but should be ${desiredState}`);
  if (runtimeState === "FAILED") reasons.push("the runtime failed");
  else if (runtimeState === "UNKNOWN") reasons.push("the runtime cannot be reached");
  else if (runtimeState !== desiredState)
    reasons.push(`the runtime is ${runtimeState} but should be ${desiredState}`);
  if (instanceState === "FAILED") return { classification: "FAILED", reasons };
  if (runtimeState === "UNKNOWN") return { classification: "UNKNOWN", reasons };
  return { classification: reasons.length === 0 ? "HEALTHY" : "DEGRADED", reasons };
}
