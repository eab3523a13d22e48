import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  GetHealthResponseSchema,
  RunDoctorResponseSchema,
} from "../gen/example/gateway/v1/gateway_service_pb.ts";
import type {
  InstanceSchema,
  ListInstancesResponseSchema,
} from "../gen/example/gateway/v1/instance_service_pb.ts";
import type { ControlPlane, InstanceState } from "../model/control.ts";
import { RunvaultError } from "../model/error.ts";
import { wallClock } from "../model/time.ts";

/** The process serves: that is all it says. */
export function health(): MessageInitShape<typeof GetHealthResponseSchema> {
  return { status: "SERVING", tsNow: wallClock() };
}

/** The checks of what the service depends on. */
export async function doctorReport(
  control: ControlPlane,
): Promise<MessageInitShape<typeof RunDoctorResponseSchema>> {
  const trouble = await control.doctor();
  const check = { name: "control plane", ok: trouble === null, message: trouble ?? "" };
  return { ok: trouble === null, checks: [check] };
}

/** The instances and the daemon's status. */
export async function inventory(
  control: ControlPlane,
): Promise<MessageInitShape<typeof ListInstancesResponseSchema>> {
  const [trouble, instances] = await Promise.all([control.doctor(), control.instances()]);
  return {
    daemon: { reachable: trouble === null, version: "", message: trouble ?? "" },
    instances: instances.map(instanceInit),
  };
}

/** An instance of the inventory. */
export function instanceInit(instance: InstanceState): MessageInitShape<typeof InstanceSchema> {
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
    endpoints: { runtime: runtimeState !== "UNKNOWN", websocket: false, metricsPort: instance.metricsPort },
  };
}

/** The instance of that id. Throws `instance_not_found`. */
export async function instanceNamed(control: ControlPlane, instanceId: string): Promise<InstanceState> {
  const instance = (await control.instances()).find((found) => found.instanceId === instanceId);
  if (instance === undefined) {
    throw new RunvaultError("instance_not_found", `there is no instance ${JSON.stringify(instanceId)}`, {
      hint: "The inventory of instances names those there are.",
    });
  }
  return instance;
}
