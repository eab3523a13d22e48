import type { DescService } from "@bufbuild/protobuf";
import { DatasourceService } from "../src/gen/example/gateway/v1/datasource_service_pb.ts";
import { DiscoveryService } from "../src/gen/example/gateway/v1/discovery_service_pb.ts";
import { GatewayService } from "../src/gen/example/gateway/v1/gateway_service_pb.ts";
import { InstanceService } from "../src/gen/example/gateway/v1/instance_service_pb.ts";
import { RuntimeService } from "../src/gen/example/gateway/v1/runtime_service_pb.ts";
import { HistoryService } from "../src/gen/example/history/v1/history_service_pb.ts";

/** Every service of the interface. */
export const services: readonly DescService[] = [
  HistoryService,
  GatewayService,
  InstanceService,
  RuntimeService,
  DiscoveryService,
  DatasourceService,
];
