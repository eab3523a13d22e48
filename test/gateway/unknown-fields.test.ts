import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { Gateway } from "../../src/gateway/gateway.ts";
import { openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { openRpcGateway } from "../../src/gateway/rpc/rpc-gateway.ts";
import { FillSchema } from "../../src/gen/example/history/v1/rows_pb.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { serveHttp } from "../fixtures/source/gateway-scripted-server.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { fail, protoType } from "../fixtures/source/rpc-scripted-pages.ts";

const run = { instanceId: "alpha-1", runId: "2022-01-01" };

/** What is read of a gateway, the error's message where it throws one, and what was told besides. */
interface Seen {
  readonly read: unknown;
  readonly told: readonly string[];
}

async function seenWith(gateway: Gateway, ask: (gateway: Gateway) => Promise<unknown>): Promise<unknown> {
  await using open = gateway;
  try {
    return await ask(open);
  } catch (thrown) {
    if (thrown instanceof RunvaultError && thrown.code === "not_a_gateway") return thrown.message;
    throw thrown;
  }
}

/** A gateway over REST with these documents by the last part of their path. */
async function overRest(documents: object, ask: (gateway: Gateway) => Promise<unknown>): Promise<Seen> {
  await using server = await serveHttp((request, response) => {
    const name = new URL(request.url ?? "", "http://h").pathname.split("/").at(-1) ?? "";
    response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify((documents as Record<string, unknown>)[name]));
  });
  const told: string[] = [];
  const options = { baseUrl: server.url, retry: quickRetry({ retries: 0 }) };
  const gateway = openRestGateway({ ...options, onNotice: (text) => told.push(text) });
  return { read: await seenWith(gateway, ask), told };
}

/** A gateway over RPC with these answers by method: one each time, the last one for ever. */
async function overRpc(
  answers: Record<string, readonly Uint8Array[]>,
  ask: (gateway: Gateway) => Promise<unknown>,
): Promise<Seen> {
  const asked = new Map<string, number>();
  await using server = await serveHttp((request, response) => {
    const method = request.url?.split("/").at(-1) ?? "";
    const of = method === "GetDatasource" ? [new Uint8Array()] : answers[method];
    const nth = asked.get(method) ?? 0;
    asked.set(method, nth + 1);
    if (of === undefined) fail(response, Code.Unimplemented);
    else response.writeHead(200, protoType).end(of[Math.min(nth, of.length - 1)]);
  });
  const told: string[] = [];
  const options = { baseUrl: server.url, retry: quickRetry({ retries: 0 }) };
  const gateway = openRpcGateway({ ...options, onNotice: (text) => told.push(text) });
  return { read: await seenWith(gateway, ask), told };
}

const text = (number: number, value: string) =>
  new BinaryWriter().tag(number, WireType.LengthDelimited).string(value).finish();
const count = (number: number, value: number) =>
  new BinaryWriter().tag(number, WireType.Varint).uint32(value).finish();
const inner = (number: number, ...parts: Uint8Array[]) =>
  new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(Buffer.concat(parts)).finish();

const facts = (gateway: Gateway) => gateway.facts(run, {});
const runs = (gateway: Gateway) => gateway.runs(run.instanceId);
const instances = (gateway: Gateway) => gateway.instances();
const rows = async (gateway: Gateway) => {
  const lines: string[] = [];
  for await (const chunk of gateway.rows({ ...run, table: "fills" }))
    lines.push(Buffer.from(chunk).toString());
  return lines.join("").split("\n").length - 1;
};

const listed = {
  run_id: run.runId,
  instance_id: run.instanceId,
  status: "FINISHED",
  ts_started: "1",
  ts_ended: "2",
  final: true,
};
const counted = {
  table: "fills",
  rows: "3",
  min_ts_event: "1",
  max_ts_event: "2",
  row_checksum: "5",
  final: true,
};
const uncounted = {
  table: "orders",
  rows: "0",
  min_ts_event: "0",
  max_ts_event: "0",
  row_checksum: "",
  final: true,
};

describe("over REST, what is needed under another key is an error", () => {
  test.each([
    [
      "a list of runs",
      { runs: { items: [listed] } },
      runs,
      "the list of runs has no runs, but fields that the contract does not know: items",
    ],
    [
      "beside an empty one",
      { runs: { runs: [], items: [listed] } },
      runs,
      "the list of runs has no runs, but",
    ],
    [
      "a run's status",
      { runs: { runs: [{ ...listed, status: "", state: "FINISHED" }] } },
      runs,
      "an entry of the list of runs has no status, but fields that the contract does not know: state",
    ],
    [
      "a run's id",
      { runs: { runs: [{ ...listed, run_id: undefined, id: "r" }] } },
      runs,
      "an entry of the list of runs has no run_id, but fields that the contract does not know: id",
    ],
    [
      "a list of instances",
      { instances: { data: { instances: [] } } },
      instances,
      "the list of instances has no instances, but fields that the contract does not know: data",
    ],
    [
      "an instance's runs",
      { instances: { instances: [{ instance_id: "a", runs: ["r"] }] } },
      instances,
      "an entry of the list of instances has no run_ids, but fields that the contract does not know: runs",
    ],
    [
      "facts",
      { storage: { facts: [counted] } },
      facts,
      "the storage document has no tables, but fields that the contract does not know: facts",
    ],
    [
      "a table's rows",
      { storage: { tables: [{ ...uncounted, count: "7" }] } },
      facts,
      "an entry of the storage document has no rows, but fields that the contract does not know: count",
    ],
    [
      "a table's name",
      { storage: { tables: [{ ...counted, table: "", name: "fills" }] } },
      facts,
      "an entry of the storage document has no table, but fields that the contract does not know: name",
    ],
  ])("%s", async (_name, documents, ask, message) => {
    const { read, told } = await overRest(documents, ask);
    expect(read).toContain(message);
    expect(told).toEqual([]);
  });
});

describe("over RPC, what is needed under another number is an error", () => {
  const entry = [text(1, "2022-01-01"), text(2, "alpha-1"), text(3, "FINISHED")];
  test.each([
    [
      "the list of runs",
      { ListRuns: [inner(7, ...entry)] },
      runs,
      "the list of runs has no runs, but fields that the contract does not know: #7",
    ],
    [
      "the list of instances",
      { ListInstances: [inner(4, text(1, "a"))] },
      instances,
      "has no instances, but fields that the contract does not know: #4",
    ],
    [
      "an instance's runs",
      { ListInstances: [inner(1, text(1, "a"), text(9, "r"))] },
      instances,
      "has no run_ids, but fields that the contract does not know: #9",
    ],
    [
      "facts",
      { GetStorageFacts: [inner(2, text(1, "fills"))] },
      facts,
      "the storage document has no tables, but fields that the contract does not know: #2",
    ],
    [
      "a table's rows",
      { GetStorageFacts: [inner(1, text(1, "fills"), count(12, 7), count(13, 1))] },
      facts,
      "an entry of the storage document has no rows, but fields that the contract does not know: #12, #13",
    ],
    [
      "a table's name",
      { GetStorageFacts: [inner(1, text(11, "fills"), count(2, 7))] },
      facts,
      "has no table, but fields that the contract does not know: #11",
    ],
    [
      "rows",
      { PreviewTable: [inner(5, inner(1, toBinary(FillSchema, create(FillSchema, run))))] },
      rows,
      "a page of PreviewTable has no rows, but fields that the contract does not know: #5",
    ],
  ])("%s", async (_name, answers, ask, message) => {
    const { read, told } = await overRpc(answers, ask);
    expect(read).toContain(message);
    expect(told).toEqual([]);
  });

  test("and costs a table's job that table alone", async () => {
    const error = { code: "not_a_gateway", scope: "table" };
    const page = inner(5, inner(1, toBinary(FillSchema, create(FillSchema, run))));
    await overRpc({ PreviewTable: [page] }, (gateway) => expect(rows(gateway)).rejects.toMatchObject(error));
  });
});

describe("a gateway that grew is read all the same, and each field is told once", () => {
  test("over REST", async () => {
    const documents = {
      runs: { ok: true, runs: [{ ...listed, host: "h", tags: ["a"] }], page: { next: "x" } },
      storage: {
        tables: [
          { ...counted, bytes: "900" },
          { ...uncounted, bytes: "10", checked: "9" },
        ],
        node: "n",
      },
      instances: {
        instances: [
          { instance_id: "a", run_ids: ["r"], tags: ["x"] },
          { instance_id: "b", run_ids: [], tags: ["y"], name: "B" },
        ],
      },
    };
    const twice = async (gateway: Gateway) => {
      for (let time = 0; time < 2; time++) {
        expect(await runs(gateway)).toHaveLength(1);
        expect(await instances(gateway)).toHaveLength(2);
        expect((await facts(gateway))?.get("fills")?.rows).toBe(3n);
      }
    };
    // a count that stands beside no rows alone, and nowhere else, may be that of the rows
    const { told, read } = await overRest(documents, twice);
    expect(read).toContain(
      "an entry of the storage document has no rows, but fields that the contract does not know: checked",
    );
    expect(told).toHaveLength(6);

    documents.storage.tables[1] = { ...uncounted, bytes: "10" };
    const grown = await overRest(documents, twice);
    expect(grown.read).toBeUndefined();
    const left = "has fields that the contract does not know, which are ignored:";
    expect(grown.told).toEqual([
      `the list of runs ${left} page`,
      `an entry of the list of runs ${left} host, tags`,
      `an entry of the list of instances ${left} tags`,
      `an entry of the list of instances ${left} name`,
      `the storage document ${left} node`,
      `an entry of the storage document ${left} bytes`,
    ]);
  });

  test("over RPC, in the pages of rows as well, of which an empty one may follow", async () => {
    const fill = inner(1, inner(1, toBinary(FillSchema, create(FillSchema, { ...run, seq: 1n }))));
    const grown = [text(6, "a query id that is longer than a row need be"), count(7, 1)];
    const empty = Buffer.concat(grown);
    const pages = [Buffer.concat([fill, ...grown]), empty];
    const { read, told } = await overRpc({ PreviewTable: pages }, async (gateway) => [
      await rows(gateway),
      await rows(gateway),
    ]);
    expect(read).toEqual([1, 0]);
    expect(told).toEqual([
      "a page of PreviewTable has fields that the contract does not know, which are ignored: #6, #7",
    ]);
    // never seen beside rows, it may be them; too short for one, it is not
    expect((await overRpc({ PreviewTable: [empty] }, rows)).read).toContain("has no rows, but");
    expect((await overRpc({ PreviewTable: [text(6, "short")] }, rows)).read).toBe(0);
  });

  test("and names that are none are not shown", async () => {
    const { told } = await overRest({ runs: { runs: [listed], "s3cret \u001b[1m": 1 } }, runs);
    expect(told).toEqual([
      "the list of runs has fields that the contract does not know, which are ignored: a field with an odd name",
    ]);
  });
});

describe("an honest empty list stays empty", () => {
  test("over REST, beside an object that no list was seen with", async () => {
    const documents = { runs: { runs: [], page: { size: 100 } } };
    const { read, told } = await overRest(documents, runs);
    expect(read).toEqual([]);
    expect(told).toEqual([
      "the list of runs has fields that the contract does not know, which are ignored: page",
    ]);
  });

  test("over REST, zero values of tomorrow's fields included", async () => {
    const documents = {
      runs: { runs: [], items: [], next: "", total: 0 },
      instances: { instances: [] },
      storage: { tables: [{ ...uncounted, bytes: "0", sums: {} }] },
    };
    const { read, told } = await overRest(documents, async (gateway) => [
      await runs(gateway),
      await instances(gateway),
      (await facts(gateway))?.get("orders")?.rows,
    ]);
    expect(read).toEqual([[], [], 0n]);
    expect(told).toEqual([]);
  });

  test("over RPC", async () => {
    const nothing = [new Uint8Array()];
    const answers = {
      ListRuns: nothing,
      ListInstances: nothing,
      GetStorageFacts: nothing,
      PreviewTable: nothing,
    };
    const { read } = await overRpc(answers, async (gateway) => [
      await runs(gateway),
      await instances(gateway),
      (await facts(gateway))?.size,
      await rows(gateway),
    ]);
    expect(read).toEqual([[], [], 0, 0]);
  });
});
