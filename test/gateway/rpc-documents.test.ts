import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { GatewayOptions } from "../../src/gateway/options.ts";
import { openRpcGateway } from "../../src/gateway/rpc/rpc-gateway.ts";
import {
  GetInstanceResponseSchema,
  InstanceSchema,
} from "../../src/gen/example/gateway/v1/instance_service_pb.ts";
import {
  GetStorageFactsResponseSchema,
  GetSummaryResponseSchema,
  ListInstancesResponseSchema,
  ListResourcesResponseSchema,
  ListRunsResponseSchema,
  RunSchema,
  SummarySchema,
} from "../../src/gen/example/history/v1/history_service_pb.ts";
import { type ErrorCode, RunvaultError } from "../../src/model/error.ts";
import { serveHttp } from "../fixtures/source/gateway-scripted-server.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { fail, protoType } from "../fixtures/source/rpc-scripted-pages.ts";

const run = { instanceId: "i 1", runId: "r/1" };
type Gateway = ReturnType<typeof openRpcGateway>;

const bytesOf = <Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>): Uint8Array =>
  toBinary(schema, create(schema, init));

/** What a client makes of a server that has these answers by method, and no other method. */
async function withAnswers<T>(
  answers: Record<string, Uint8Array | undefined>,
  ask: (gateway: Gateway) => Promise<T>,
  options: Partial<GatewayOptions> = {},
): Promise<T | ErrorCode> {
  await using server = await serveHttp((request, response) => {
    const method = request.url?.split("/").at(-1) ?? "";
    const answer = method === "GetDatasource" ? new Uint8Array() : answers[method];
    if (answer === undefined) fail(response, Code.Unimplemented);
    else response.writeHead(200, protoType).end(answer);
  });
  await using gateway = openRpcGateway({
    baseUrl: server.url,
    retry: quickRetry({ retries: 0 }),
    ...options,
  });
  try {
    return await ask(gateway);
  } catch (thrown) {
    if (thrown instanceof RunvaultError) return thrown.code;
    throw thrown;
  }
}

test("a gateway without the optional methods gives null, and no instances is an error", async () => {
  const answer = await withAnswers({}, async (gateway) => [
    await gateway.runs(run.instanceId),
    await gateway.facts(run, {}),
    await gateway.document(run, "run"),
    await gateway.document(run, "resources"),
    await gateway.document(run, "facts"),
    await gateway.document(run, "instance"),
  ]);
  expect(answer).toEqual([null, null, null, null, null, null]);
  expect(await withAnswers({}, (gateway) => gateway.instances())).toBe("route_not_found");
});

test("64-bit counts and times stay exact, and tables that nobody knows are left out", async () => {
  const facts = {
    rows: 2n ** 64n - 1n,
    minTsEvent: 9_007_199_254_740_993n,
    maxTsEvent: 2n ** 63n - 1n,
    schemaFingerprint: "f",
  };
  const tables = [
    { table: "fills", ...facts },
    { table: "of_tomorrow", ...facts },
  ];
  const answer = await withAnswers(
    { GetStorageFacts: bytesOf(GetStorageFactsResponseSchema, { tables }) },
    async (gateway) => [...(await gateway.facts(run, { from: -1n }))!],
  );
  expect(answer).toEqual([
    [
      "fills",
      {
        rows: facts.rows,
        first: facts.minTsEvent,
        last: facts.maxTsEvent,
        schemaFingerprint: "f",
        final: false,
      },
    ],
  ]);
});

describe("an answer that is not as the interface says is refused", () => {
  const entry = { runId: "r/1", instanceId: "i 1", status: "FINISHED", final: true };
  const runs = (...entries: MessageInitShape<typeof ListRunsResponseSchema>["runs"] & object) => ({
    ListRuns: bytesOf(ListRunsResponseSchema, { runs: entries }),
  });
  const instances = (init: MessageInitShape<typeof ListInstancesResponseSchema>) => ({
    ListInstances: bytesOf(ListInstancesResponseSchema, init),
  });
  const facts = (...tables: MessageInitShape<typeof GetStorageFactsResponseSchema>["tables"] & object) => ({
    GetStorageFacts: bytesOf(GetStorageFactsResponseSchema, { tables }),
  });
  const listRuns = (gateway: Gateway) => gateway.runs(run.instanceId);
  const listInstances = (gateway: Gateway) => gateway.instances();
  const askFacts = (gateway: Gateway) => gateway.facts(run, {});
  const summary = (gateway: Gateway) => gateway.document(run, "summary");

  test.each<[string, Record<string, Uint8Array>, (gateway: Gateway) => Promise<unknown>, ErrorCode]>([
    ["an instance without an id", instances({ instances: [{}] }), listInstances, "not_a_gateway"],
    [
      "an instance twice",
      instances({ instances: [{ instanceId: "i" }, { instanceId: "i" }] }),
      listInstances,
      "not_a_gateway",
    ],
    [
      "a run named current",
      instances({ instances: [{ instanceId: "i", runIds: ["current"] }] }),
      listInstances,
      "not_a_gateway",
    ],
    ["a run without an id", runs({ ...entry, runId: "" }), listRuns, "not_a_gateway"],
    ["a run twice", runs(entry, entry), listRuns, "not_a_gateway"],
    ["a run of another instance", runs({ ...entry, instanceId: "i" }), listRuns, "history_identity_conflict"],
    ["a table twice", facts({ table: "fills" }, { table: "fills" }), askFacts, "not_a_gateway"],
    [
      "times that are swapped",
      facts({ table: "fills", rows: 1n, minTsEvent: 2n, maxTsEvent: 1n }),
      askFacts,
      "not_a_gateway",
    ],
    [
      "a summary of another run",
      { GetSummary: bytesOf(GetSummaryResponseSchema, { summary: { runId: "r" } }) },
      summary,
      "history_identity_conflict",
    ],
    ["no summary", { GetSummary: new Uint8Array() }, summary, "history_identity_conflict"],
    [
      "another instance",
      { GetInstance: bytesOf(GetInstanceResponseSchema, { instance: { instanceId: "i" } }) },
      (gateway) => gateway.document(run, "instance"),
      "history_identity_conflict",
    ],
    ["what does not decode", { ListRuns: Uint8Array.of(0x0a, 0x05, 0x61) }, listRuns, "history_query_failed"],
    [
      "text that is no UTF-8",
      { ListInstances: Uint8Array.of(0x0a, 0x03, 0x0a, 0x01, 0xff) },
      listInstances,
      "history_query_failed",
    ],
    [
      "a document that is too large",
      { ListRuns: Buffer.alloc(16 * 1024 * 1024 + 1) },
      listRuns,
      "limit_exceeded",
    ],
  ])("%s", async (_name, answers, ask, code) => {
    expect(await withAnswers(answers, ask)).toBe(code);
  });
});

test("the run's document is its own entry in the list, and null where the run is not in it", async () => {
  const entry = { instanceId: "i 1", status: "RUNNING", tsStarted: 2n ** 62n + 1n };
  const answers = {
    ListRuns: bytesOf(ListRunsResponseSchema, {
      runs: [
        { ...entry, runId: "r/1" },
        { ...entry, runId: "Ünï" },
      ],
    }),
  };
  const bytes = await withAnswers(answers, (gateway) => gateway.document(run, "run"));
  expect(Buffer.from(bytes as Uint8Array).toString("utf8")).toBe(
    '{"run_id":"r/1","instance_id":"i 1","status":"RUNNING","ts_started":"4611686018427387905","ts_ended":"0","final":false,"storage_version":""}',
  );
  const other = { ...run, runId: "r" };
  expect(await withAnswers(answers, (gateway) => gateway.document(other, "run"))).toBeNull();
});

describe("fields of tomorrow in documents are kept under their numbers", () => {
  const text = (number: number, value: string) =>
    new BinaryWriter().tag(number, WireType.LengthDelimited).string(value).finish();
  const count = (number: number, value: number) =>
    new BinaryWriter().tag(number, WireType.Varint).uint32(value).finish();
  const inner = (number: number, ...parts: Uint8Array[]) =>
    new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(Buffer.concat(parts)).finish();
  const base64 = (...parts: Uint8Array[]) => Buffer.concat(parts).toString("base64");
  const read = async (answers: Record<string, Uint8Array>, kind: Parameters<Gateway["document"]>[1]) => {
    const bytes = await withAnswers(answers, (gateway) => gateway.document(run, kind));
    return JSON.parse(Buffer.from(bytes as Uint8Array).toString("utf8")) as Record<string, unknown>;
  };

  test("in a summary", async () => {
    const summary = inner(
      GetSummaryResponseSchema.field.summary.number,
      count(901, 7),
      text(900, "12345.678"),
      bytesOf(SummarySchema, run),
      count(901, 8),
    );
    const document = await read({ GetSummary: summary }, "summary");
    expect(document).toMatchObject({ run_id: run.runId, instance_id: run.instanceId });
    expect(Object.entries(document).slice(-2)).toEqual([
      ["#900", base64(text(900, "12345.678"))],
      ["#901", base64(count(901, 7), count(901, 8))],
    ]);
  });

  test("in each of the resources, and beside them", async () => {
    const { number } = ListResourcesResponseSchema.field.resources;
    const resources = [
      inner(number),
      inner(number, text(900, "x")),
      inner(number, text(900, "y")),
      count(99, 1),
    ];
    const document = await read({ ListResources: Buffer.concat(resources) }, "resources");
    const entries = document.resources as readonly Record<string, unknown>[];
    expect(entries.map((entry) => entry["#900"])).toEqual([
      undefined,
      base64(text(900, "x")),
      base64(text(900, "y")),
    ]);
    expect(document["#99"]).toBe(base64(count(99, 1)));
  });

  test("in runs, which are read all the same", async () => {
    const list = inner(
      ListRunsResponseSchema.field.runs.number,
      bytesOf(RunSchema, { runId: "r/1", instanceId: "i 1", status: "FINISHED" }),
      text(900, "x"),
    );
    expect(await withAnswers({ ListRuns: list }, (gateway) => gateway.runs("i 1"))).toMatchObject([
      { runId: "r/1", status: "FINISHED" },
    ]);
    expect((await read({ ListRuns: list }, "run"))["#900"]).toBe(base64(text(900, "x")));
  });

  test("in an instance, and in the messages within it", async () => {
    const instance = inner(
      GetInstanceResponseSchema.field.instance.number,
      bytesOf(InstanceSchema, { instanceId: run.instanceId }),
      inner(InstanceSchema.field.project.number, text(900, "x")),
    );
    const document = await read({ GetInstance: instance }, "instance");
    expect(document).toMatchObject({ project: { "#900": base64(text(900, "x")) } });
  });

  test("but not by thousands", async () => {
    const fields = Array.from({ length: 1001 }, () => count(900, 1));
    const answers = (most: number) => ({ ListResources: Buffer.concat(fields.slice(0, most)) });
    expect(await withAnswers(answers(1001), (gateway) => gateway.document(run, "resources"))).toBe(
      "not_a_gateway",
    );
    expect(await read(answers(1000), "resources")).toHaveProperty("#900");
  });
});
