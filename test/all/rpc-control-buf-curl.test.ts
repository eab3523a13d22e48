import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { DatasourceService } from "../../src/gen/example/gateway/v1/datasource_service_pb.ts";
import { DiscoveryService } from "../../src/gen/example/gateway/v1/discovery_service_pb.ts";
import { GatewayService } from "../../src/gen/example/gateway/v1/gateway_service_pb.ts";
import { InstanceService } from "../../src/gen/example/gateway/v1/instance_service_pb.ts";
import { RuntimeService } from "../../src/gen/example/gateway/v1/runtime_service_pb.ts";
import { projectFolder as root } from "../fixtures/command/project.ts";
import { LiveWorld, minute } from "../fixtures/served/live-world.ts";

const run = promisify(execFile);
const alpha = { instanceId: "alpha-1" };

/** In the order in which they are asked: what a lifecycle action does shows after it. */
const calls: readonly (readonly [
  service: { typeName: string },
  method: string,
  request: object,
  answer: object,
])[] = [
  [GatewayService, "GetInfo", {}, { features: ["rest", "rpc", "history", "websocket", "metrics"] }],
  [GatewayService, "GetHealth", {}, { status: "SERVING" }],
  [GatewayService, "RunDoctor", {}, { ok: true, checks: [{ name: "control_plane" }, { name: "history" }] }],
  [DatasourceService, "ListDatasources", {}, { datasources: [{ name: "control_plane" }, {}, {}] }],
  [DiscoveryService, "ListTargets", {}, { targets: [{ metricsPath: "/metrics" }, { port: 9100, ...alpha }] }],
  [InstanceService, "ListInstances", {}, { daemon: { reachable: true }, instances: [alpha] }],
  [InstanceService, "GetInstance", alpha, { instance: { ...alpha, instanceState: "RUNNING" } }],
  [InstanceService, "GetLogs", { ...alpha, tail: 1 }, { lines: [{ text: expect.stringMatching(/^2024/) }] }],
  [RuntimeService, "GetStatus", alpha, { capabilities: { accounts: true }, engine: { state: "RUNNING" } }],
  [RuntimeService, "ListResources", alpha, { runtime: alpha }],
  [
    RuntimeService,
    "Query",
    { ...alpha, path: "accounts" },
    { accounts: { accounts: [{ account: "main" }] } },
  ],
  [InstanceService, "RestartInstance", alpha, { receipt: { ...alpha, action: "restart", accepted: true } }],
  [InstanceService, "StopInstance", alpha, { receipt: { action: "stop" } }],
  [InstanceService, "StartInstance", alpha, { receipt: { action: "start" } }],
];

test("buf curl with the proto files gets an answer of every method of the other services", async () => {
  await using world = await LiveWorld.open();
  const services = [GatewayService, InstanceService, DiscoveryService, DatasourceService, RuntimeService];
  expect(calls.map(([{ typeName }, method]) => `${typeName}/${method}`).sort()).toEqual(
    services.flatMap(({ typeName, methods }) => methods.map(({ name }) => `${typeName}/${name}`)).sort(),
  );
  const origin = new URL(world.server.url).origin;
  for (const [{ typeName }, method, request, answer] of calls) {
    const url = `${origin}/${typeName}/${method}`;
    const args = ["curl", "--schema", "proto", "--data", JSON.stringify(request), url];
    const { stdout } = await run(join(root, "node_modules", ".bin", "buf"), args, { cwd: root });
    expect(JSON.parse(stdout), method).toMatchObject(answer);
    // so that the states agree again before the next action
    if (/^(Re)?[Ss]t(art|op)/.test(method)) world.pass(minute);
  }
});
