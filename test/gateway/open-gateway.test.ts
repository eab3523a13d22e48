// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Gateway } from "../../src/gateway/gateway.ts";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import type { TransportChoice } from "../../src/gateway/transport-choice.ts";
import { HistoryService } from "../../src/gen/example/history/v1/history_service_pb.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { tableNames } from "../../src/model/profile/table.ts";
import { documentKinds, type HistorySource, type RowRequest } from "../../src/model/source.ts";
import { type ServeOptions, serve } from "../../src/serve/server.ts";
import { openSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { type ScriptedServer, serveHttp } from "../fixtures/source/gateway-scripted-server.ts";
import { historySourceContract } from "../fixtures/source/history-source-contract.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

const run = { instanceId: "alpha-1", runId: "2022-01-01-001" };
const fills = { ...run, table: "fills" } as const;
let cacheDir: string;
let world: Simulator;

beforeAll(async () => {
  cacheDir = await mkdtemp(join(tmpdir(), "open-gateway-"));
  world = await openSimulator({ cacheDir, runs: 1, rows: 3_000, clock: () => 2n ** 62n });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await rm(cacheDir, { recursive: true, force: true });
});

/** The world served as told, with the paths that were asked for. */
async function served(options: Partial<ServeOptions>) {
  const paths: string[] = [];
  const server = await serve({
    source: world,
    control: world,
    host: "127.0.0.1",
    port: 0,
    onRequest: ({ path }) => void paths.push(path.replace(/^\/api\/v1/, "")),
    ...options,
  });
  return { url: server.url, paths, [Symbol.asyncDispose]: () => server.close() };
}

async function linesOf(source: Pick<HistorySource, "rows">, request: RowRequest): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source.rows(request)) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

async function errorOf(work: Promise<unknown>): Promise<RunvaultError> {
  const thrown: unknown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (thrown instanceof RunvaultError) return thrown;
  throw new Error(`expected a RunvaultError, got ${String(thrown)}`);
}

for (const transports of [["rest", "rpc"], ["rest"], ["rpc"]] as const) {
  historySourceContract(`a gateway found to offer ${transports.join(" and ")}`, async () => {
    const server = await served({ transports });
    const documents = openGateway({ baseUrl: server.url }, transports[0]);
    const source = openGateway({ baseUrl: server.url }, "auto");
    return {
      source,
      truth: world,
      documents,
      run,
      [Symbol.asyncDispose]: async () => {
        await source[Symbol.asyncDispose]();
        await documents[Symbol.asyncDispose]();
        await server[Symbol.asyncDispose]();
      },
    };
  });
}

test("where both transports are there, documents come over RPC and rows over REST", async () => {
  await using server = await served({});
  await using gateway = openGateway({ baseUrl: server.url }, "auto");
  await gateway.facts(run, {});
  await gateway.document(run, "summary");
  await gateway.runs(run.instanceId);
  await linesOf(gateway, fills);
  // both were asked for something small first, once
  expect(server.paths.slice(0, 2).sort()).toEqual([
    "/example.history.v1.HistoryService/GetDatasource",
    "/history/instances",
  ]);
  expect(server.paths.slice(2)).toEqual([
    "/example.history.v1.HistoryService/GetStorageFacts",
    "/example.history.v1.HistoryService/GetSummary",
    "/example.history.v1.HistoryService/ListRuns",
    "/history/fills",
  ]);
  expect(gateway.stats.requests).toBe(server.paths.length);
});

test("each transport's lists can be asked by themselves", async () => {
  for (const transports of [["rest", "rpc"], ["rest"], ["rpc"]] as const) {
    await using server = await served({ transports });
    for (const choice of ["auto", transports[0]] as const) {
      await using gateway = openGateway({ baseUrl: server.url }, choice);
      const listings = await gateway.listings!();
      const offered = choice === "auto" ? [...transports].reverse() : [choice];
      expect(listings.map(({ by }) => by.toLowerCase())).toEqual(offered);
      for (const listing of listings) {
        server.paths.length = 0;
        const runs = (await listing.runs(run.instanceId))!;
        expect(runs).toMatchObject((await world.runs(run.instanceId))!);
        const own = runs.find(({ runId }) => runId === run.runId)!.text!;
        expect(Buffer.from(own)).toEqual(Buffer.from((await world.document(run, "run"))!));
        expect((await listing.instances()).map(({ instanceId }) => instanceId)).toContain(run.instanceId);
        expect(await listing.currentRun("nobody")).toBeNull();
        const isRpc = listing.by === "RPC";
        expect(server.paths.every((path) => path.includes("Service/") === isRpc)).toBe(true);
      }
    }
  }
});

test("what a literal REST lacks comes over RPC", async () => {
  await using server = await served({ literal: true, transports: ["rest", "rpc"] });
  await using gateway = openGateway({ baseUrl: server.url }, "auto");
  await using rest = openGateway({ baseUrl: server.url }, "rest");
  expect(await rest.facts(run, {})).toBeNull();
  expect(await rest.runs(run.instanceId)).toBeNull();
  expect(await gateway.facts(run, {})).toEqual(await world.facts(run, {}));
  expect(await gateway.runs(run.instanceId)).toEqual(await world.runs(run.instanceId));
  for (const kind of documentKinds) expect(await gateway.document(run, kind)).not.toBeNull();
});

describe("a gateway whose RPC is older than row checksums", () => {
  const entry = { table: "fills", rows: 2n, minTsEvent: 1n, maxTsEvent: 5n, final: true };
  const history = { instances: [{ instance_id: run.instanceId, run_ids: [run.runId] }] };

  /** RPC that knows nothing of checksums, beside a REST that gives this one, or does not know them either. */
  function older(checksum: string | undefined): Promise<ScriptedServer> {
    const rpc = connectNodeAdapter({
      routes: (router) =>
        router.service(HistoryService, {
          getDatasource: () => ({ name: "old" }),
          getStorageFacts: ({ withChecksum, table }) => {
            if (!withChecksum && table === "") return { tables: [entry, { ...entry, table: "bars" }] };
            throw new ConnectError("there is no field number 5", Code.InvalidArgument);
          },
        }),
    });
    return serveHttp((request, response) => {
      const url = new URL(request.url!, "http://gateway");
      if (request.method === "POST") return rpc(request, response);
      const isKnown = checksum !== undefined || !url.searchParams.has("with_checksum");
      const facts = { rows: "2", min_ts_event: "1", max_ts_event: "5", final: true, row_checksum: checksum };
      const body = url.pathname.endsWith("/instances")
        ? history
        : isKnown
          ? { tables: [{ table: "fills", ...facts }] }
          : {
              ok: false,
              error: { code: "invalid_argument", message: "there is no parameter with_checksum" },
            };
      response.writeHead(isKnown ? 200 : 400, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    });
  }

  test.each([
    ["rpc", undefined],
    ["rest", undefined],
    ["auto", undefined],
    ["auto", "77"],
  ] as const)(
    "has facts over %s all the same, and the checksum that REST gives: %s",
    async (choice, checksum) => {
      await using server = await older(checksum);
      await using gateway = openGateway({ baseUrl: server.url }, choice);
      const facts = await gateway.facts(run, {}, undefined, { withHash: true, table: "fills" });
      expect([...facts!.keys()]).toEqual(["fills"]);
      expect(facts!.get("fills")).toMatchObject({ rows: 2n, first: 1n, last: 5n });
      expect(facts!.get("fills")!.rowHash).toBe(checksum === undefined ? undefined : 77n);
    },
  );
});

test("rows page by page are the rows, where there is RPC, and no route where there is none", async () => {
  await using both = await served({ maxRowsPerAnswer: 10 });
  await using capped = openGateway({ baseUrl: both.url }, "auto");
  expect((await linesOf(capped, fills)).split("\n")).toHaveLength(11);
  expect(await linesOf({ rows: (request) => capped.pagedRows!(request) }, fills)).toBe(
    await linesOf(world, fills),
  );
  await using alone = await served({ transports: ["rest"] });
  await using rest = openGateway({ baseUrl: alone.url }, "auto");
  const pages = { rows: (request: RowRequest) => rest.pagedRows!(request) };
  expect((await errorOf(linesOf(pages, fills))).code).toBe("route_not_found");
});

describe("a probe", () => {
  const json = { "content-type": "application/json" };
  const instances = JSON.stringify({ instances: [{ instance_id: "i", run_ids: ["r"] }] });

  /** REST under /api/v1, and another answer for everything else. */
  function restBeside(status: number, other: string | undefined): Promise<ScriptedServer> {
    return serveHttp((request, response) => {
      const inside = request.url?.startsWith("/api/v1/");
      if (request.method === "GET" && request.url === "/api/v1/history/instances") {
        response.writeHead(200, json).end(instances);
      } else if (inside) response.writeHead(404).end();
      else response.writeHead(status, { "content-type": other ?? "text/html" }).end("<html>");
    });
  }

  const open = (server: ScriptedServer, transport: TransportChoice = "auto"): Gateway =>
    openGateway({ baseUrl: `${server.url}/api/v1`, retry: quickRetry({ retries: 0 }) }, transport);

  test.each([
    [200, "text/html"],
    [302, "text/html"],
    [401, "text/html"],
    [403, "application/json"],
    [404, "text/html"],
    [405, "text/html"],
    [501, "application/json"],
  ])("takes REST alone where the origin answers %i as another application's", async (status, type) => {
    await using server = await restBeside(status, type);
    await using gateway = open(server);
    expect(await gateway.instances()).toEqual([{ instanceId: "i", runIds: ["r"] }]);
    // the probe is not repeated
    await gateway.instances();
    expect(server.requests.filter((line) => line.startsWith("POST"))).toHaveLength(2);
    await using rpc = open(server, "rpc");
    expect(["route_not_found", "not_a_gateway"]).toContain((await errorOf(rpc.instances())).code);
  });

  test("does not take a gateway that is shut, or out of reach, for one without RPC", async () => {
    await using shut = await served({ token: "secret" });
    await using stranger = openGateway({ baseUrl: shut.url, retry: quickRetry({ retries: 0 }) }, "auto");
    expect((await errorOf(stranger.instances())).code).toBe("unauthenticated");

    await using broken = await serveHttp((request, response) => {
      if (request.method === "GET") response.writeHead(200, json).end(instances);
      else response.writeHead(503).end();
    });
    await using half = open(broken);
    const error = await errorOf(half.instances());
    expect(error.code).toBe("server_error");
    expect(error.hint).toContain("--transport rest");

    await using nobody = openGateway(
      { baseUrl: await freeAddress(), retry: quickRetry({ retries: 0 }) },
      "auto",
    );
    expect((await errorOf(nobody.instances())).code).toBe("unreachable");
  });

  test("that failed is made again by the next request", async () => {
    let ready = false;
    await using server = await serveHttp((request, response) => {
      if (!ready) response.writeHead(503).end();
      else if (request.method === "GET") response.writeHead(200, json).end(instances);
      else response.writeHead(404).end();
    });
    await using gateway = open(server);
    expect((await errorOf(gateway.instances())).code).toBe("server_error");
    ready = true;
    expect(await gateway.instances()).toHaveLength(1);
  });

  test("of something that offers neither says what REST said", async () => {
    await using server = await serveHttp((_request, response) => response.writeHead(404).end());
    await using gateway = open(server);
    const error = await errorOf(gateway.instances());
    expect(error.code).toBe("route_not_found");
    expect(error.place.url).toMatch(/\/history\/instances$/);
  });

  test("ends with the request that waits for it", async () => {
    await using server = await serveHttp(() => {});
    await using gateway = open(server);
    const giving = new AbortController();
    const asked = errorOf(gateway.instances(giving.signal));
    giving.abort();
    expect((await asked).code).toBe("interrupted");
  });
});

test("an RPC that answers at the origin alone is found there", async () => {
  await using server = await served({ transports: ["rpc"] });
  // a base address below which nothing answers
  const baseUrl = `${new URL(server.url).origin}/elsewhere/v9`;
  for (const transport of ["auto", "rpc"] as const) {
    await using gateway = openGateway({ baseUrl }, transport);
    expect(await gateway.facts(run, {})).toEqual(await world.facts(run, {}));
    for (const table of tableNames) {
      expect(await linesOf(gateway, { ...run, table })).toBe(await linesOf(world, { ...run, table }));
    }
  }
});

/** An address where nothing listens. */
async function freeAddress(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}/api/v1`;
}
