import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  DatasourceSchema,
  DatasourceService,
} from "../../gen/example/gateway/v1/datasource_service_pb.ts";
import type { DiscoveryService } from "../../gen/example/gateway/v1/discovery_service_pb.ts";
import type { GatewayService } from "../../gen/example/gateway/v1/gateway_service_pb.ts";
import type { InstanceService } from "../../gen/example/gateway/v1/instance_service_pb.ts";
import type { RuntimeService } from "../../gen/example/gateway/v1/runtime_service_pb.ts";
import type { ControlPlane, LifecycleAction } from "../../model/control.ts";
import type { HistorySource } from "../../model/source.ts";
import { wallClock } from "../../model/time.ts";
import { requiredId } from "../history/row-selection.ts";
import { metricsTargets } from "../monitoring/monitoring-routes.ts";
import { doctorReport, health, historyTrouble, instanceMessage, inventory } from "./control-documents.ts";
import { tailOf } from "./log-routes.ts";

export interface GatewayServiceOptions {
  /** Without it the doctor has nothing to check: RunDoctor is unimplemented, as its REST route does not exist. */
  readonly control: ControlPlane | undefined;
  readonly source: HistorySource;
  readonly name: string;
  readonly version: string;
  readonly features: readonly string[];
}

/** GatewayService: identifies the service, and reports its health. */
export function gatewayService(options: GatewayServiceOptions): Partial<ServiceImpl<typeof GatewayService>> {
  const { control, source, name, version, features } = options;
  const tsStarted = wallClock();
  return {
    getInfo: () => ({ name, version, tsStarted, features: [...features] }),
    getHealth: () => health(),
    ...(control === undefined ? {} : { runDoctor: () => doctorReport(control, source) }),
  };
}

/** InstanceService: the inventory, lifecycle actions, and the end of a log. */
export function instanceService(control: ControlPlane): ServiceImpl<typeof InstanceService> {
  const accept = async (given: string, action: LifecycleAction) => {
    const instanceId = requiredId("instance_id", given);
    await control.act(instanceId, action);
    return { receipt: { instanceId, action, accepted: true } };
  };
  return {
    listInstances: () => inventory(control),
    async getInstance({ instanceId }) {
      return { instance: instanceMessage(await control.instance(requiredId("instance_id", instanceId))) };
    },
    startInstance: ({ instanceId }) => accept(instanceId, "start"),
    stopInstance: ({ instanceId }) => accept(instanceId, "stop"),
    restartInstance: ({ instanceId }) => accept(instanceId, "restart"),
    async getLogs({ instanceId, tail }) {
      const lines = await control.log(requiredId("instance_id", instanceId), tailOf(tail));
      return { lines: lines.map(({ time, severity, text }) => ({ tsEvent: time, severity, text })) };
    },
  };
}

/** RuntimeService: what an instance reports about itself. */
export function runtimeService(control: ControlPlane): ServiceImpl<typeof RuntimeService> {
  return {
    getStatus: ({ instanceId }) => control.status(requiredId("instance_id", instanceId)),
    listResources: ({ instanceId }) => control.catalog(requiredId("instance_id", instanceId)),
    query: ({ instanceId, path }) => control.query(requiredId("instance_id", instanceId), path),
  };
}

/** DiscoveryService: the addresses of metrics, as reachable by a request's Host, from `address`. */
export function discoveryService(
  control: ControlPlane | undefined,
  address: (host: string) => string,
): ServiceImpl<typeof DiscoveryService> {
  return {
    async listTargets(_request, { requestHeader }) {
      const host = address(requestHeader.get("host") ?? "");
      const targets = await metricsTargets(control);
      return {
        targets: targets.map(({ path, instanceId, port }) => ({
          address: host,
          metricsPath: path,
          instanceId,
          port,
        })),
      };
    },
  };
}

export interface DatasourceServiceOptions {
  readonly control: ControlPlane | undefined;
  readonly source: HistorySource;
  /** The kind of store behind the history. */
  readonly kind: string;
}

/** DatasourceService: the data source, and whether it answers. */
export function datasourceService(options: DatasourceServiceOptions): ServiceImpl<typeof DatasourceService> {
  const { control, source, kind } = options;
  return {
    async listDatasources() {
      const trouble = await historyTrouble(source);
      const datasources: MessageInitShape<typeof DatasourceSchema>[] = [
        { name: "history", kind, available: trouble === "", message: trouble },
      ];
      if (control !== undefined) {
        const [{ reachable, message }, instances] = await Promise.all([
          control.daemon(),
          control.instances(),
        ]);
        const silent = instances.filter(({ runtimeAnswers }) => !runtimeAnswers);
        const lost = silent.map(({ instanceId }) => instanceId).join(", ");
        datasources.unshift({ name: "control_plane", kind: control.kind, available: reachable, message });
        datasources.push({
          name: "runtime",
          kind: control.kind,
          available: silent.length === 0,
          message: silent.length === 0 ? "" : `cannot be reached: ${lost}`,
        });
      }
      return { datasources };
    },
  };
}
