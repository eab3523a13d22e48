import { type DescMessage, type DescService, type MessageShape, toJson } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  DatasourceService,
  type ListDatasourcesResponse,
} from "../../src/gen/example/gateway/v1/datasource_service_pb.ts";
import { DiscoveryService } from "../../src/gen/example/gateway/v1/discovery_service_pb.ts";
import { ErrorCode, GatewayErrorSchema } from "../../src/gen/example/gateway/v1/error_pb.ts";
import {
  GatewayService,
  RunDoctorResponseSchema,
} from "../../src/gen/example/gateway/v1/gateway_service_pb.ts";
import {
  InstanceSchema,
  InstanceService,
  ListInstancesResponseSchema,
} from "../../src/gen/example/gateway/v1/instance_service_pb.ts";
import {
  GetStatusResponseSchema,
  ListResourcesResponseSchema,
  QueryResponseSchema,
  RuntimeService,
} from "../../src/gen/example/gateway/v1/runtime_service_pb.ts";
import { LiveWorld, second } from "../fixtures/served/live-world.ts";

const instanceId = "alpha-1";

function clientOf<Service extends DescService>(world: LiveWorld, service: Service): Client<Service> {
  const baseUrl = new URL(world.server.url).origin;
  return createClient(
    service,
    createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true }),
  );
}

/** A message as REST would show it. */
function json<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): unknown {
  return JSON.parse(JSON.stringify(toJson(schema, message, { alwaysEmitImplicit: true })));
}

/** The error of the gateway inside the Connect error that a call fails with. */
async function failure(call: Promise<unknown>) {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => ConnectError.from(thrown),
  );
  const [detail] = error?.findDetails(GatewayErrorSchema) ?? [];
  return { code: error?.code, detail };
}

let world: LiveWorld;
beforeAll(async () => {
  world = await LiveWorld.open();
});
afterAll(async () => world[Symbol.asyncDispose]());

test("every answer over RPC is the message that REST answers with", async () => {
  const gateway = clientOf(world, GatewayService);
  const instances = clientOf(world, InstanceService);
  const runtime = clientOf(world, RuntimeService);
  const rest = async (path: string) => (await world.ask(path)).json();
  expect(json(RunDoctorResponseSchema, await gateway.runDoctor({}))).toEqual(await rest("/doctor"));
  expect(json(ListInstancesResponseSchema, await instances.listInstances({}))).toEqual(
    await rest("/instances"),
  );
  const { instance } = await instances.getInstance({ instanceId });
  expect(json(InstanceSchema, instance!)).toEqual(await rest(`/instances/${instanceId}`));
  expect(json(GetStatusResponseSchema, await runtime.getStatus({ instanceId }))).toEqual(
    await rest(`/runtime/status?instance=${instanceId}`),
  );
  expect(json(ListResourcesResponseSchema, await runtime.listResources({ instanceId }))).toEqual(
    await rest(`/runtime/resources?instance=${instanceId}`),
  );
  for (const path of ["resources", "accounts", "accounts/main", "portfolios", "events", "factors"]) {
    const answer = json(QueryResponseSchema, await runtime.query({ instanceId, path }));
    expect(answer).toEqual(await rest(`/runtime/query/${path}?instance=${instanceId}`));
  }
  for (const tail of [0, 3]) {
    const { lines } = await instances.getLogs({ instanceId, tail });
    const text = (await world.ask(`/instances/${instanceId}/logs?tail=${tail}`)).text;
    expect(lines.map((line) => `${line.text}\n`).join("")).toBe(text);
  }
});

test("metrics targets are those of GET /discovery", async () => {
  const { targets } = await clientOf(world, DiscoveryService).listTargets({});
  const groups = (await world.ask("/discovery")).json();
  expect(targets.map(({ address, metricsPath }) => [address, metricsPath])).toEqual(
    groups.map(({ targets: [address], labels }: { targets: string[]; labels: Record<string, string> }) => [
      address,
      labels.__metrics_path__,
    ]),
  );
  expect(targets.map(({ port, instanceId: id }) => [port, id])).toEqual([
    [0, ""],
    [9100, instanceId],
  ]);
});

test("lifecycle actions are accepted over RPC, and a conflict says so in both vocabularies", async () => {
  await using own = await LiveWorld.open({ rows: 1000 });
  const instances = clientOf(own, InstanceService);
  expect((await instances.stopInstance({ instanceId })).receipt).toMatchObject({
    instanceId,
    action: "stop",
    accepted: true,
  });
  expect(await failure(instances.restartInstance({ instanceId }))).toMatchObject({
    code: Code.FailedPrecondition,
    detail: { code: ErrorCode.STATE_CONFLICT },
  });
  own.pass(2n * second);
  expect((await instances.startInstance({ instanceId })).receipt?.action).toBe("start");
  own.pass(3n * second);
  expect((await instances.getInstance({ instanceId })).instance).toMatchObject({ instanceState: "RUNNING" });
});

test("what REST refuses RPC refuses, with the same code of the gateway", async () => {
  const instances = clientOf(world, InstanceService);
  const runtime = clientOf(world, RuntimeService);
  const nobody = { instanceId: "nobody" };
  for (const [call, code, gatewayCode] of [
    [instances.getInstance({}), Code.InvalidArgument, ErrorCode.INVALID_ARGUMENT],
    [instances.getInstance(nobody), Code.NotFound, ErrorCode.INSTANCE_NOT_FOUND],
    [instances.startInstance(nobody), Code.NotFound, ErrorCode.INSTANCE_NOT_FOUND],
    [instances.startInstance({ instanceId }), Code.FailedPrecondition, ErrorCode.STATE_CONFLICT],
    [instances.getLogs({ instanceId, tail: 10_001 }), Code.OutOfRange, ErrorCode.LIMIT_EXCEEDED],
    [instances.getLogs(nobody), Code.NotFound, ErrorCode.INSTANCE_NOT_FOUND],
    [runtime.getStatus(nobody), Code.NotFound, ErrorCode.INSTANCE_NOT_FOUND],
    [runtime.listResources({}), Code.InvalidArgument, ErrorCode.INVALID_ARGUMENT],
    [runtime.query({ instanceId }), Code.NotFound, ErrorCode.RESOURCE_NOT_FOUND],
    [runtime.query({ instanceId, path: "orders" }), Code.NotFound, ErrorCode.RESOURCE_NOT_FOUND],
  ] as const) {
    expect(await failure(call)).toMatchObject({ code, detail: { code: gatewayCode } });
  }
});

test("datasources tell what does not answer", async () => {
  await using own = await LiveWorld.open({
    rows: 500,
    instances: 2,
    faultTexts: ["daemon-unreachable@*", "runtime-unreachable@beta-2"],
  });
  const listed = ({ datasources }: ListDatasourcesResponse) =>
    datasources.map(({ name, available, message }) => [name, available, message]);
  expect(listed(await clientOf(world, DatasourceService).listDatasources({}))).toEqual([
    ["control_plane", true, ""],
    ["history", true, ""],
    ["runtime", true, ""],
  ]);
  expect(listed(await clientOf(own, DatasourceService).listDatasources({}))).toEqual([
    ["control_plane", false, "the daemon cannot be reached"],
    ["history", true, ""],
    ["runtime", false, "cannot be reached: beta-2"],
  ]);
});
