import type { ServiceImpl } from "@connectrpc/connect";
import type { GatewayService } from "../gen/example/gateway/v1/gateway_service_pb.ts";
import type { InstanceService } from "../gen/example/gateway/v1/instance_service_pb.ts";
import type { ControlPlane } from "../model/control.ts";
import { wallClock } from "../model/time.ts";
import { doctorReport, health, instanceInit, instanceNamed, inventory } from "./control-documents.ts";
import { requiredId } from "./row-selection.ts";

export interface GatewayServiceOptions {
  /** Without it there is nothing for the doctor to check: RunDoctor is unimplemented, as it is no route on REST. */
  readonly control: ControlPlane | undefined;
  readonly name: string;
  readonly version: string;
  readonly features: readonly string[];
}

/** GatewayService: what this is, and that it serves. */
export function gatewayService(options: GatewayServiceOptions): Partial<ServiceImpl<typeof GatewayService>> {
  const { control, name, version, features } = options;
  const tsStarted = wallClock();
  return {
    getInfo: () => ({ name, version, tsStarted, features: [...features] }),
    getHealth: () => health(),
    ...(control === undefined ? {} : { runDoctor: () => doctorReport(control) }),
  };
}

/** InstanceService, as far as a control plane shows instances; what acts on them is unimplemented. */
export function instanceService(control: ControlPlane): Partial<ServiceImpl<typeof InstanceService>> {
  return {
    listInstances: () => inventory(control),
    async getInstance({ instanceId }) {
      const instance = await instanceNamed(control, requiredId("instance_id", instanceId));
      return { instance: instanceInit(instance) };
    },
  };
}
