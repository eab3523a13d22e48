import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { DescService } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DatasourceService } from "../../src/gen/example/gateway/v1/datasource_service_pb.ts";
import { DiscoveryService } from "../../src/gen/example/gateway/v1/discovery_service_pb.ts";
import { GatewayService } from "../../src/gen/example/gateway/v1/gateway_service_pb.ts";
import { InstanceService } from "../../src/gen/example/gateway/v1/instance_service_pb.ts";
import { RuntimeService } from "../../src/gen/example/gateway/v1/runtime_service_pb.ts";
import { HistoryService } from "../../src/gen/example/history/v1/history_service_pb.ts";
import { tableNames } from "../../src/model/profile/table.ts";
import type { RunRef } from "../../src/model/source.ts";
import { projectFolder as root } from "../fixtures/command/project.ts";
import { ServedArchive } from "../fixtures/served/served-archive.ts";

const run = promisify(execFile);
const buf = join(root, "node_modules", ".bin", "buf");

let world: ServedArchive;
let schema: string;
let first: RunRef;
let last: RunRef;
beforeAll(async () => {
  world = await ServedArchive.open({ rows: 1000 });
  [first, last] = [world.runs[0]!, world.runs.at(-1)!];
  // the proto files, read once for all the calls
  schema = join(world.folder, "schema.binpb");
  await run(buf, ["build", "--output", schema], { cwd: root });
});
afterAll(() => world[Symbol.asyncDispose]());

// biome-ignore lint/suspicious/noExplicitAny: what a test expects of it says what it is
type Json = any;

/** What buf prints and how it ends, asked of a server: 0, or eight times the number of the error's Connect code. */
async function curl(
  base: string,
  service: DescService,
  method: string,
  request: object,
  ...flags: string[]
): Promise<{ status: number; json: Json }> {
  const url = `${new URL(base).origin}/${service.typeName}/${method}`;
  const args = ["curl", "--schema", schema, "--data", JSON.stringify(request), ...flags, url];
  const answer = (status: number, text: string) => ({ status, json: JSON.parse(text) as Json });
  try {
    return answer(0, (await run(buf, args, { maxBuffer: 16 * 1024 * 1024 })).stdout);
  } catch (thrown) {
    const { code, stderr } = thrown as { code: number; stderr: string };
    return answer(code, stderr);
  }
}

const failedPrecondition = 9 * 8;
const notFound = 5 * 8;
const invalidArgument = 3 * 8;

const history: Record<string, () => object> = {
  ListInstances: () => ({}),
  ListRecentFills: () => ({ selection: first, limit: 5 }),
  ListRuns: () => ({ instanceId: first.instanceId }),
  ListResources: () => first,
  GetStorageFacts: () => first,
  GetSummary: () => first,
  ListPortfolioSeries: () => ({ selection: first, pageSize: 50 }),
  ListPortfolioMetrics: () => ({ selection: first }),
  ListMarketBars: () => ({ selection: { ...first, symbol: "BTC-PERP" }, pageSize: 50 }),
  PreviewTable: () => ({ table: "orders", selection: first, pageSize: 50 }),
};

test.each(Object.keys(history))(
  "buf curl on HistoryService/%s has the simulator's answer",
  async (method) => {
    const request = history[method]!();
    const [ours, theirs] = await Promise.all(
      [world.url, world.simulated.url].map((base) => curl(base, HistoryService, method, request)),
    );
    expect(Object.values(ours!.json)[0]).toBeTruthy();
    // where the next page begins is each server's own word
    const isPaged = "pageSize" in request;
    for (const { status, json } of [ours!, theirs!]) {
      expect([status, "nextPageToken" in json]).toEqual([0, isPaged]);
      delete json.nextPageToken;
    }
    expect(ours!.json).toEqual(theirs!.json);
  },
);

test("buf curl on HistoryService/GetDatasource is told of an archive with every table", async () => {
  expect(await curl(world.url, HistoryService, "GetDatasource", {})).toEqual({
    status: 0,
    json: { name: "runvault serve", kind: "archive", available: true, tables: [...tableNames] },
  });
});

test.each(["fills", "factors"] as const)(
  "buf curl on PreviewTable pages %s to the simulator's rows",
  async (table) => {
    const rows: Json[] = [];
    for (let pageToken = ""; ; ) {
      const request = { table, selection: last, pageSize: 150, pageToken };
      const { status, json } = await curl(
        world.url,
        HistoryService,
        "PreviewTable",
        request,
        "--emit-defaults",
      );
      expect([status, json.rows.length > 0]).toEqual([0, true]);
      rows.push(...json.rows.map((row: object) => Object.values(row)[0]));
      pageToken = json.nextPageToken ?? "";
      if (pageToken === "") break;
    }
    const lower = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const lines = await world.simulatedLines(last, table);
    const expected = lines.map((line) =>
      Object.fromEntries(Object.entries(JSON.parse(line)).map(([name, value]) => [lower(name), value])),
    );
    expect(rows).toEqual(expected);
  },
);

/** Of the other services: what each method is asked, and what an archive has to say. */
const others: readonly (readonly [
  service: DescService,
  method: string,
  request: () => object,
  status: number,
  answer: () => object,
])[] = [
  [
    GatewayService,
    "GetInfo",
    () => ({}),
    0,
    () => ({
      name: "runvault serve",
      features: ["rest", "rpc", "history", "metrics"],
    }),
  ],
  [GatewayService, "GetHealth", () => ({}), 0, () => ({ status: "SERVING" })],
  [
    GatewayService,
    "RunDoctor",
    () => ({}),
    0,
    () => ({
      ok: true,
      checks: ["control_plane", "history", "archive", "manifest", "files", "tables"].map((name) => ({
        name,
        ok: true,
      })),
    }),
  ],
  [
    DatasourceService,
    "ListDatasources",
    () => ({}),
    0,
    () => ({ datasources: expect.arrayContaining([expect.objectContaining({ name: "history" })]) }),
  ],
  [
    DiscoveryService,
    "ListTargets",
    () => ({}),
    0,
    () => ({ targets: [{ address: new URL(world.url).host, metricsPath: "/metrics" }] }),
  ],
  [
    InstanceService,
    "ListInstances",
    () => ({}),
    0,
    () => ({
      daemon: { reachable: true },
      instances: [{ instanceId: last.instanceId, instanceState: "STOPPED", currentRunId: last.runId }],
    }),
  ],
  [
    InstanceService,
    "GetInstance",
    () => ({ instanceId: last.instanceId }),
    0,
    () => ({ instance: { desiredState: "STOPPED", processState: "STOPPED", runtimeState: "STOPPED" } }),
  ],
  ...(["StartInstance", "StopInstance", "RestartInstance", "GetLogs"] as const).map(
    (method) =>
      [
        InstanceService,
        method,
        () => ({ instanceId: last.instanceId }),
        failedPrecondition,
        () => refusal("ERROR_CODE_CAPABILITY_UNAVAILABLE", method === "GetLogs" ? "logs" : "lifecycle"),
      ] as const,
  ),
  [
    RuntimeService,
    "GetStatus",
    () => ({ instanceId: last.instanceId }),
    0,
    () => ({
      transport: { connected: true, kind: "archive" },
      engine: { state: "STOPPED", runId: last.runId },
      // false flags are left out of the JSON; lifecycle is one
      capabilities: { resources: true, history: true },
    }),
  ],
  [
    RuntimeService,
    "ListResources",
    () => ({ instanceId: last.instanceId }),
    0,
    () => ({
      runtime: { ...last },
      resources: expect.arrayContaining([
        expect.objectContaining({ contract: expect.objectContaining({ historyModel: "fills" }) }),
      ]),
    }),
  ],
  [
    RuntimeService,
    "Query",
    () => ({ instanceId: last.instanceId, path: "resources" }),
    0,
    () => ({ path: "resources", resources: { resources: expect.any(Array) } }),
  ],
  [
    RuntimeService,
    "Query",
    () => ({ instanceId: last.instanceId, path: "accounts" }),
    failedPrecondition,
    () => refusal("ERROR_CODE_CAPABILITY_UNAVAILABLE", "accounts"),
  ],
  [
    RuntimeService,
    "Query",
    () => ({ instanceId: last.instanceId, path: "nothing" }),
    notFound,
    () => refusal("ERROR_CODE_RESOURCE_NOT_FOUND"),
  ],
  [
    InstanceService,
    "GetInstance",
    () => ({ instanceId: "nobody" }),
    notFound,
    () => refusal("ERROR_CODE_INSTANCE_NOT_FOUND"),
  ],
  [
    InstanceService,
    "StartInstance",
    () => ({}),
    invalidArgument,
    () => refusal("ERROR_CODE_INVALID_ARGUMENT"),
  ],
];

/** An error whose detail is the gateway's own, as buf shows one. */
function refusal(code: string, capability?: string): object {
  const debug = { code, ...(capability === undefined ? {} : { capability }) };
  return { details: [{ type: "example.gateway.v1.GatewayError", debug }] };
}

test.each(others.map((call) => [`${call[0].name}/${call[1]} ${call[3]}`, call] as const))(
  "buf curl on %s is answered",
  async (_, [service, method, request, status, answer]) => {
    const given = await curl(world.url, service, method, request());
    expect(given).toMatchObject({ status, json: answer() });
  },
);

test.each([
  ["run_not_found", "not_found", () => ({ ...first, runId: "current" })],
  ["instance_not_found", "not_found", () => ({ ...first, instanceId: "nobody" })],
  ["invalid_argument", "invalid_argument", () => ({ runId: first.runId })],
])("buf curl shows the history code %s in the detail of the error", async (code, connect, request) => {
  const [json, web] = await Promise.all(
    [[], ["--protocol", "grpcweb"]].map(
      async (flags) => (await curl(world.url, HistoryService, "GetSummary", request(), ...flags)).json,
    ),
  );
  expect(json).toMatchObject({
    code: connect,
    details: [{ type: "example.history.v1.HistoryErrorDetail", debug: { code } }],
  });
  // gRPC-Web has the same bytes, and no text of them
  const details = json.details.map(({ type, value }: Json) => ({ type, value }));
  expect(web).toEqual({ code: connect, message: json.message, details });
});

test("these are the methods that there are", () => {
  const asked = [
    ...["GetDatasource", ...Object.keys(history)].map((method) => `${HistoryService.typeName}/${method}`),
    ...others.map(([{ typeName }, method]) => `${typeName}/${method}`),
  ];
  const services = [
    HistoryService,
    GatewayService,
    InstanceService,
    DiscoveryService,
    DatasourceService,
    RuntimeService,
  ];
  const all = services.flatMap(({ typeName, methods }) => methods.map(({ name }) => `${typeName}/${name}`));
  expect([...new Set(asked)].sort()).toEqual(all.sort());
});
