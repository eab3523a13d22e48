// @module-tag slow
import { afterEach, expect, test } from "vitest";
import { tables } from "../../src/model/profile/table.ts";
import type { RequestLogEntry } from "../../src/serve/monitoring/request-log.ts";
import { type Served, type ServeOptions, serve } from "../../src/serve/server.ts";
import { controlOf } from "../fixtures/served/serve-control.ts";
import { ArraySource, fills, rowOf } from "../fixtures/served/serve-source.ts";

const open: Served[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((served) => served.close()));
});

async function served(source: ArraySource, options: Partial<ServeOptions> = {}): Promise<Served> {
  const server = await serve({ source, host: "127.0.0.1", port: 0, ...options });
  open.push(server);
  return server;
}

async function get(server: Served, path: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.url}${path}`, { headers });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) };
}

const everyTable = () =>
  new ArraySource(
    Object.fromEntries(tables.map(({ name }) => [name, [rowOf(name, { seq: "1", ts_event: "5" })]])),
  );

const control = controlOf({ instanceId: "alpha", currentRunId: "r1" });

test.each(tables.map((table) => [table.name, table] as const))(
  "rows of %s come as their lines",
  async (name, table) => {
    const source = everyTable();
    const answer = await get(await served(source), `${table.path}?instance=alpha&run_id=r1`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("application/x-ndjson");
    expect(answer.text).toBe(`${source.lines(name)[0]}\n`);
  },
);

test("rows obey half-open bounds in both notations, limit and filter", async () => {
  const source = new ArraySource({ fills: fills(20) });
  const server = await served(source);
  const lines = source.lines("fills");
  const rows = async (query: string) =>
    (await get(server, `/history/fills?instance=alpha&run_id=r1&${query}`)).text.split("\n").slice(0, -1);
  expect(await rows("from=1010&to=1030")).toEqual(lines.slice(1, 3));
  expect(await rows("from=1970-01-01T00:00:00.00000101Z&to=1970-01-01T00:00:00.00000103Z")).toEqual(
    lines.slice(1, 3),
  );
  expect(await rows("from=1010&to=1010")).toEqual([]);
  expect(await rows("limit=3&symbol=ETH")).toEqual([lines[1], lines[3], lines[5]]);
  expect(await rows("limit=2&symbol=")).toEqual(lines.slice(0, 2));
  expect(await rows("venue=Z%C3%BCrich&limit=1")).toEqual(lines.slice(0, 1));
});

test.each([
  ["/history/fills", 400, "invalid_argument"],
  ["/history/fills?instance=", 400, "invalid_argument"],
  ["/history/fills?instance=alpha&limt=3", 400, "invalid_argument"],
  ["/history/fills?instance=alpha&limit=3&limit=4", 400, "invalid_argument"],
  ["/history/fills?instance=alpha&limit=0", 400, "invalid_argument"],
  ["/history/fills?instance=alpha&limit=-1", 400, "invalid_argument"],
  ["/history/fills?instance=alpha&limit=1e3", 400, "invalid_argument"],
  ["/history/fills?instance=alpha&from=yesterday", 400, "invalid_argument"],
  ["/history/fills?instance=alpha&to=2022-02-30", 400, "invalid_argument"],
  ["/history/fills?instance=alpha&from=", 400, "invalid_argument"],
  ["/history/fills?instance=alpha&from=9223372036854775808", 400, "invalid_argument"],
  ["/history/fills?instance=alpha&from=2&to=1", 400, "invalid_argument"],
  ["/history/portfolio/equity?instance=alpha&symbol=BTC", 400, "invalid_argument"],
  ["/history/bars?instance=alpha&account=", 400, "invalid_argument"],
  ["/history/fills?instance=alpha&run_id=current", 404, "run_not_found"],
  ["/history/fills?instance=alpha&run_id=nope", 404, "run_not_found"],
  ["/history/fills?instance=nobody", 404, "instance_not_found"],
  ["/history/fills?instance=nobody&run_id=r1", 404, "instance_not_found"],
  ["/history/orders?instance=alpha", 409, "history_unavailable"],
  ["/history/runs?instance=nobody", 404, "instance_not_found"],
  ["/history/runs", 400, "invalid_argument"],
  ["/history/runs?instance=alpha&run_id=r1", 400, "invalid_argument"],
  ["/history/instances?instance=alpha", 400, "invalid_argument"],
  ["/history/storage?instance=alpha&run_id=current", 404, "run_not_found"],
  ["/history/storage?instance=alpha&from=x", 400, "invalid_argument"],
  ["/history/summary?instance=alpha&run_id=nope", 404, "run_not_found"],
  ["/history/resources?instance=alpha", 404, "route_not_found"],
  ["/history/nothing", 404, "route_not_found"],
  ["/history", 404, "route_not_found"],
])("%s is answered %i %s in the history envelope", async (path, status, code) => {
  const answer = await get(await served(new ArraySource({ fills: fills(1) })), path);
  expect([answer.status, answer.json()]).toEqual([
    status,
    { ok: false, error: { code, message: expect.stringMatching(/./) } },
  ]);
});

test.each([
  ["/nothing", 404, "ERROR_CODE_ROUTE_NOT_FOUND"],
  ["/instances/nobody", 404, "ERROR_CODE_INSTANCE_NOT_FOUND"],
  ["/runtime/status", 400, "ERROR_CODE_INVALID_ARGUMENT"],
  ["/runtime/status?instance=nobody", 404, "ERROR_CODE_INSTANCE_NOT_FOUND"],
  ["/runtime/resources?inst=alpha", 400, "ERROR_CODE_INVALID_ARGUMENT"],
  ["/instances?all=1", 400, "ERROR_CODE_INVALID_ARGUMENT"],
  ["/instances/%zz", 400, "ERROR_CODE_INVALID_ARGUMENT"],
])("%s is answered %i %s in the control envelope", async (path, status, code) => {
  const answer = await get(await served(everyTable(), { control }), path);
  const { error, ...rest } = answer.json();
  expect([answer.status, error.code, rest]).toEqual([status, code, {}]);
  expect(Object.keys(error).sort()).toEqual(["capability", "code", "hint", "message", "upstreamCode"]);
});

test.each([
  ["/history/instances?format=csv", "this route takes none"],
  ["/history/fills?instance=alpha&format=csv", "this route takes instance, run_id, from, to, limit, "],
])("an unknown parameter is answered with those that there are: %s", async (path, known) => {
  const { message } = (await get(await served(everyTable(), { control }), path)).json().error;
  expect(message).toContain(`unknown parameter "format"; ${known}`);
});

test("an empty run_id is the latest run, also where the source does not list runs", async () => {
  const source = new ArraySource({ fills: fills(2) }, ["r0", "r1"]);
  const log: RequestLogEntry[] = [];
  const server = await served(source, { onRequest: (entry) => log.push(entry) });
  await get(server, "/history/fills?instance=alpha&run_id=");
  source.lists = false;
  await get(server, "/history/fills?instance=alpha");
  expect(log.map(({ run }) => run)).toEqual(["r1", "r1"]);
  expect((await get(server, "/history/fills?instance=nobody")).json().error.code).toBe("instance_not_found");
  expect((await get(server, "/history/runs?instance=alpha")).json().error.code).toBe("route_not_found");
  expect((await get(server, "/history/storage?instance=alpha")).json().error.code).toBe("route_not_found");
});

test("documents have proto field names, 64-bit integers as strings and zero values", async () => {
  const server = await served(new ArraySource({ fills: fills(3), bars: [] }));
  expect((await get(server, "/history/instances")).json()).toEqual({
    instances: [{ instance_id: "alpha", run_ids: ["r0", "r1"], latest_run_id: "r1" }],
  });
  expect((await get(server, "/history/runs?instance=alpha")).json().runs[1]).toEqual({
    run_id: "r1",
    instance_id: "alpha",
    status: "FINISHED",
    ts_started: "9007199254740993",
    ts_ended: "9007199254740995",
    final: true,
    storage_version: "v7",
  });
  const facts = (await get(server, "/history/storage?instance=alpha&run_id=r1&from=1010")).json();
  const common = { schema_fingerprint: "f", final: true, row_checksum: "" };
  expect(facts.tables).toEqual([
    { table: "fills", rows: "2", min_ts_event: "1010", max_ts_event: "1020", ...common },
    { table: "bars", rows: "0", min_ts_event: "0", max_ts_event: "0", ...common },
  ]);
  expect((await get(server, "/history/summary?instance=alpha")).json()).toEqual({ run_id: "r1" });
});

test("a literal server has no runs, resources or storage, and says so as an unknown route", async () => {
  const server = await served(everyTable(), { literal: true });
  for (const path of ["runs", "resources", "storage"]) {
    const answer = await get(server, `/history/${path}?instance=alpha`);
    expect([answer.status, answer.json().error.code]).toEqual([404, "route_not_found"]);
  }
  expect((await get(server, "/history/instances")).status).toBe(200);
});

test("control bodies are lower camel case with zero values", async () => {
  const server = await served(everyTable(), { control });
  expect((await get(server, "/health")).json()).toEqual({
    status: "SERVING",
    tsNow: expect.stringMatching(/^\d+$/),
  });
  expect((await get(server, "/doctor")).json()).toMatchObject({
    ok: true,
    checks: [
      { name: "control_plane", ok: true, message: "" },
      { name: "history", ok: true, message: "" },
    ],
  });
  const { daemon, instances } = (await get(server, "/instances")).json();
  expect(daemon).toEqual({ reachable: true, version: "1", message: "" });
  expect(instances[0]).toMatchObject({
    instanceId: "alpha",
    currentRunId: "r1",
    endpoints: { metricsPort: 0 },
  });
  expect((await get(server, "/instances/alpha")).json()).toEqual(instances[0]);
  expect((await get(server, "/runtime/status?instance=alpha")).json()).toMatchObject({
    transport: { connected: true },
    engine: { state: "RUNNING", runId: "r1", tsStarted: "9007199254740993" },
    capabilities: { history: true, accounts: false },
    capabilityErrors: [],
  });
  const { runtime, resources } = (await get(server, "/runtime/resources?instance=alpha")).json();
  expect(runtime.runId).toBe("r1");
  expect(resources[0].contract).toMatchObject({
    historyModel: "fills",
    payloadSchema: "example.history.v1.Fill",
  });
});

test("doctor reports a control plane out of reach, and health does not care", async () => {
  const server = await served(everyTable(), {
    control: {
      ...control,
      daemon: async () => ({ reachable: false, version: "", message: "socket gone" }),
    },
  });
  const answer = await get(server, "/doctor");
  expect([answer.status, answer.json()]).toEqual([
    502,
    {
      ok: false,
      checks: [
        { name: "control_plane", ok: false, message: "socket gone" },
        { name: "history", ok: true, message: "" },
      ],
    },
  ]);
  expect((await get(server, "/instances")).json().daemon).toMatchObject({
    reachable: false,
    message: "socket gone",
  });
  expect((await get(server, "/health")).status).toBe(200);
});

test("without a control plane only health is left of it", async () => {
  const server = await served(everyTable());
  expect((await get(server, "/health")).status).toBe(200);
  expect((await get(server, "/doctor")).json().error.code).toBe("ERROR_CODE_ROUTE_NOT_FOUND");
});

test("a token is wanted on every route, in the envelope of its plane", async () => {
  const server = await served(everyTable(), { token: "s3cret", control });
  expect((await get(server, "/history/instances")).json()).toMatchObject({
    error: { code: "unauthenticated" },
  });
  expect((await get(server, "/health")).json()).toMatchObject({
    error: { code: "ERROR_CODE_UNAUTHENTICATED" },
  });
  expect((await get(server, "/nothing", { authorization: "Bearer s3cre" })).status).toBe(401);
  expect((await get(server, "/health", { authorization: "Bearer s3cret" })).status).toBe(200);
});

test("other methods are unknown routes", async () => {
  const server = await served(everyTable());
  const response = await fetch(`${server.url}/history/fills?instance=alpha`, { method: "POST" });
  expect([response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([
    404,
    "route_not_found",
  ]);
});

test("an address that is taken is refused with a hint", async () => {
  const first = await served(everyTable());
  await expect(serve({ source: everyTable(), host: "127.0.0.1", port: first.port })).rejects.toMatchObject({
    code: "invalid_argument",
    hint: expect.stringContaining("--port"),
  });
});

test("a bug of the source is a 500 and is told to the owner of the server", async () => {
  const source = everyTable();
  source.instances = async () => {
    throw new TypeError("undefined is not a function");
  };
  const errors: string[] = [];
  const server = await served(source, { onError: ({ code }) => errors.push(code) });
  expect((await get(server, "/history/instances")).status).toBe(500);
  expect(errors).toEqual(["internal"]);
});
