import type { ControlPlane } from "../src/model/control.ts";
import { RunvaultError } from "../src/model/error.ts";
import { type InstanceFacts, instanceStateOf } from "../src/model/instance-state.ts";

/** A control plane over one instance that runs and has one resource, of fills, and no live values. */
export function controlOf(given: Pick<InstanceFacts, "instanceId" | "currentRunId">): ControlPlane {
  const state = instanceStateOf({
    project: { name: "p", version: "1" },
    desiredState: "RUNNING",
    processState: "RUNNING",
    runtimeState: "RUNNING",
    runtimeAnswers: true,
    takesSubscriptions: false,
    metricsPort: 0,
    ...given,
  });
  const known = (instanceId: string) => {
    if (instanceId !== state.instanceId)
      throw new RunvaultError("instance_not_found", `no instance ${instanceId}`);
    return state;
  };
  const missing = (capability: string): never => {
    throw new RunvaultError("capability_unavailable", `there is no ${capability}`, { capability });
  };
  return {
    kind: "test",
    isLive: true,
    daemon: async () => ({ reachable: true, version: "1", message: "" }),
    instances: async () => [state],
    instance: async (instanceId) => known(instanceId),
    act: async (instanceId) => missing(known(instanceId) && "lifecycle"),
    log: async (instanceId) => missing(known(instanceId) && "logs"),
    followLog: async (instanceId) => missing(known(instanceId) && "logs"),
    status: async (instanceId) => ({
      transport: { connected: true, kind: "test", tsLastSeen: 1n },
      engine: { state: "RUNNING", runId: known(instanceId).currentRunId, tsStarted: 9_007_199_254_740_993n },
      capabilities: { resources: true, history: true },
    }),
    catalog: async (instanceId) => ({
      runtime: { instanceId, runId: known(instanceId).currentRunId, catalogVersion: "1" },
      resources: [
        {
          resourceKey: "k",
          symbol: "BTC",
          contract: { model: "fills", historyModel: "fills", payloadSchema: "example.history.v1.Fill" },
        },
      ],
    }),
    query: async (instanceId) => missing(known(instanceId) && "accounts"),
    feeds: async (instanceId) => missing(known(instanceId) && "subscriptions"),
    gauges: async (instanceId) => missing(known(instanceId) && "metrics"),
  };
}
