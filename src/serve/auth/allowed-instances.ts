import type { ControlPlane, DoctorCheck, KeptRuns } from "../../model/control.ts";
import type { HistorySource } from "../../model/source.ts";
import { delegatingSource } from "../history/delegating-source.ts";
import { mayAsk } from "./request-scope.ts";

/**
 * A source that lists only instances that the current request may see. Requests that name an instance are checked on
 * arrival.
 */
export function allowedSource(source: HistorySource): HistorySource {
  return {
    ...delegatingSource(source),
    instances: async (signal) =>
      (await source.instances(signal)).filter(({ instanceId }) => mayAsk(instanceId)),
  };
}

/** The same for a control plane, including its doctor. */
export function allowedControl(control: ControlPlane): ControlPlane {
  return {
    kind: control.kind,
    isLive: control.isLive,
    daemon: () => control.daemon(),
    checks: async () => allowedChecks((await control.checks?.()) ?? []),
    ...(control.keptRuns === undefined ? {} : { keptRuns: () => allowedRuns(control) }),
    instances: async () => (await control.instances()).filter(({ instanceId }) => mayAsk(instanceId)),
    instance: (instanceId) => control.instance(instanceId),
    act: (instanceId, action) => control.act(instanceId, action),
    log: (instanceId, tail) => control.log(instanceId, tail),
    followLog: (instanceId, tail, signal) => control.followLog(instanceId, tail, signal),
    status: (instanceId) => control.status(instanceId),
    catalog: (instanceId) => control.catalog(instanceId),
    query: (instanceId, path) => control.query(instanceId, path),
    feeds: (instanceId, resourceKey) => control.feeds(instanceId, resourceKey),
    gauges: (instanceId) => control.gauges(instanceId),
  };
}

async function allowedRuns(control: ControlPlane): Promise<KeptRuns> {
  const { states = [], runs = [] } = (await control.keptRuns?.()) ?? {};
  return { states, runs: runs.filter(({ instanceId }) => mayAsk(instanceId)) };
}

/** Without the troubles of other instances: a check that fails only for them passes. */
function allowedChecks(checks: readonly DoctorCheck[]): DoctorCheck[] {
  return [...Map.groupBy(checks, ({ name }) => name)].flatMap(([name, found]) => {
    const own = found.filter(({ instanceId }) => instanceId === undefined || mayAsk(instanceId));
    return own.length > 0 ? own : [{ name, message: "" }];
  });
}
