import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  GetHealthResponseSchema,
  RunDoctorResponseSchema,
} from "../../gen/example/gateway/v1/gateway_service_pb.ts";
import type {
  InstanceSchema,
  ListInstancesResponseSchema,
} from "../../gen/example/gateway/v1/instance_service_pb.ts";
import type { ControlPlane } from "../../model/control.ts";
import { RunvaultError } from "../../model/error.ts";
import type { InstanceState } from "../../model/instance-state.ts";
import type { HistorySource } from "../../model/source.ts";
import { wallClock } from "../../model/time.ts";
import { messageOnWire } from "../envelope.ts";

/** The process serves requests; nothing else is checked. */
export function health(): MessageInitShape<typeof GetHealthResponseSchema> {
  return { status: "SERVING", tsNow: wallClock() };
}

/** Checks of what the service depends on. A failed check is an answer, not an error. */
export async function doctorReport(
  control: ControlPlane,
  source: HistorySource,
): Promise<MessageInitShape<typeof RunDoctorResponseSchema> & { readonly ok: boolean }> {
  const [{ reachable, message }, trouble] = await Promise.all([control.daemon(), historyTrouble(source)]);
  // an unreachable plane can report nothing else
  const more = reachable ? ((await control.checks?.()) ?? []) : [];
  const checks = [
    { name: "control_plane", ok: reachable, message },
    { name: "history", ok: trouble === "", message: trouble },
    ...more.map((check) => ({ name: check.name, ok: check.message === "", message: check.message })),
  ];
  return { ok: checks.every(({ ok }) => ok), checks };
}

/** Why the history does not answer; empty when it does. */
export async function historyTrouble(source: HistorySource): Promise<string> {
  try {
    await source.instances();
    return "";
  } catch (thrown) {
    return messageOnWire(RunvaultError.from(thrown));
  }
}

/** The instances and the daemon's status. */
export async function inventory(
  control: ControlPlane,
): Promise<MessageInitShape<typeof ListInstancesResponseSchema>> {
  const [daemon, instances] = await Promise.all([control.daemon(), control.instances()]);
  return { daemon: { ...daemon }, instances: instances.map(instanceMessage) };
}

/** An instance of the inventory. */
export function instanceMessage(instance: InstanceState): MessageInitShape<typeof InstanceSchema> {
  const { instanceId, project, desiredState, processState, runtimeState, instanceState, currentRunId } =
    instance;
  return {
    instanceId,
    project: { ...project },
    desiredState,
    processState,
    runtimeState,
    instanceState,
    currentRunId,
    endpoints: {
      runtime: instance.runtimeAnswers,
      websocket: instance.takesSubscriptions,
      metricsPort: instance.metricsPort,
    },
  };
}
