import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type DescMethodUnary, type DescService, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { archiveControl } from "../../src/archive/read/archive-control.ts";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import { GatewayService } from "../../src/gen/example/gateway/v1/gateway_service_pb.ts";
import { HistoryService } from "../../src/gen/example/history/v1/history_service_pb.ts";
import { tables } from "../../src/model/profile/table.ts";
import type { HistorySource } from "../../src/model/source.ts";
import { TokenList, tokenLine } from "../../src/serve/auth/token-list.ts";
import { accessEntry } from "../../src/serve/monitoring/access-log.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { archiveWorld, smallWorld } from "../fixtures/archive/archived-world.ts";
import { transportTo } from "../fixtures/served/rpc-clients.ts";
import { services } from "../fixtures/served/rpc-services.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const own = "0123456789abcdef-alpha";
const every = "0123456789abcdef-every";
const wrong = "0123456789abcdef-wrong";
const runId = "2022-01-01";
const list = TokenList.parse(
  `# who may ask\n\n${tokenLine(own, "alpha-desk", ["alpha"])}${tokenLine(every, "operator", ["*"])}`,
  "tokens",
);

let folder: string;
let archive: Archive;
let source: HistorySource;
let server: Served;
const log: Readonly<Record<string, unknown>>[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-tokens-"));
  const dir = join(folder, "archive");
  for (const instanceId of ["alpha", "beta"]) {
    const run = { instanceId, runId };
    const world = new Map(
      [...smallWorld(25, run)].filter(([table]) => table === "fills" || table === "bars"),
    );
    await archiveWorld(dir, new ArraySource(run, world), { tables: ["fills", "bars"] });
  }
  archive = await openArchive(dir);
  source = openArchiveSource(archive);
  server = await serve({
    source,
    control: archiveControl(archive, { source, version: "1" }),
    host: "127.0.0.1",
    port: 0,
    about: { name: "n", version: "1", kind: "archive" },
    tokens: list,
    onRequest: (entry, scope) => log.push(accessEntry(entry, scope)),
  });
});
afterAll(async () => {
  await server.close();
  await source[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

function ask(path: string, token?: string, method = "GET"): Promise<Response> {
  const headers = token === undefined ? undefined : { authorization: `Bearer ${token}` };
  return fetch(`${server.url}${path}`, { method, ...(headers === undefined ? {} : { headers }) });
}

/** Every route that names an instance, about `beta`. */
const aboutBeta: readonly (readonly [method: string, path: string])[] = [
  ["GET", "/instances/beta"],
  ["GET", "/instances/beta/health"],
  ["GET", "/instances/beta/logs"],
  ["GET", "/instances/beta/ws"],
  ["POST", "/instances/beta/start"],
  ["POST", "/instances/beta/stop"],
  ["POST", "/instances/beta/restart"],
  ...["/runtime/status", "/runtime/resources", "/runtime/query/resources", "/runtime/query/accounts"].map(
    (path) => ["GET", `${path}?instance=beta`] as const,
  ),
  ...["runs", "summary", "resources", "storage"].map(
    (name) => ["GET", `/history/${name}?instance=beta`] as const,
  ),
  ...tables.map(({ path }) => ["GET", `${path}?instance=beta&run_id=${runId}`] as const),
  // the latest run, and a name appears twice
  ["GET", "/history/fills?instance=beta"],
  ["GET", "/history/fills?instance=alpha&instance=beta"],
];
const aboutNobody: readonly (readonly [method: string, path: string])[] = [
  "/health",
  "/doctor",
  "/instances",
  "/history/instances",
  "/discovery",
  "/metrics",
  "/metrics/instances/9100",
  "/nothing",
].map((path) => ["GET", path] as const);

describe("over REST", () => {
  test.each([...aboutBeta, ...aboutNobody])("%s %s wants a token of the list", async (method, path) => {
    for (const token of [undefined, "", wrong, `${own} `.slice(1)]) {
      const answer = await ask(path, token, method);
      const body = await answer.text();
      expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
      expect(body).not.toContain("beta");
    }
  });

  test.each(aboutBeta)("%s %s is refused to the token of another instance", async (method, path) => {
    const answer = await ask(path, own, method);
    const { error } = (await answer.json()) as { error: { code: string } };
    const code = path.startsWith("/history") ? "permission_denied" : "ERROR_CODE_PERMISSION_DENIED";
    expect([answer.status, error.code]).toEqual([403, code]);
    expect((await ask(path, every, method)).status).not.toBe(403);
  });

  test("whether an instance exists is not told to a token that is not for it", async () => {
    const texts = ["beta", "nobody"].map(async (id) =>
      (await (await ask(`/instances/${id}`, own)).text()).replaceAll(id, "ID"),
    );
    const [there, missing] = await Promise.all(texts);
    expect(there).toBe(missing);
  });

  test("lists have the token's instances alone", async () => {
    for (const [token, ids] of [
      [own, ["alpha"]],
      [every, ["alpha", "beta"]],
    ] as const) {
      const live = (await (await ask("/instances", token)).json()) as { instances: { instanceId: string }[] };
      expect(live.instances.map(({ instanceId }) => instanceId)).toEqual(ids);
      const held = (await (await ask("/history/instances", token)).json()) as {
        instances: { instance_id: string }[];
      };
      expect(held.instances.map((instance) => instance.instance_id)).toEqual(ids);
    }
  });

  test("its own instance is answered", async () => {
    const rows = await (await ask(`/history/fills?instance=alpha&run_id=${runId}`, own)).text();
    expect(rows.trimEnd().split("\n")).toHaveLength(25);
  });
});

const methods = services.flatMap((service) =>
  service.methods.map((method) => [`${service.name}.${method.name}`, service, method] as const),
);

/** A request that names the instance wherever the method's request can. */
function requestOf(method: DescMethodUnary, instanceId: string): Message | undefined {
  const names = method.input.fields.map(({ localName }) => localName);
  const path = method.name === "Query" ? { path: "resources" } : {};
  const table = method.name === "PreviewTable" ? { table: "fills" } : {};
  if (names.includes("instanceId")) return create(method.input, { instanceId, ...path });
  if (names.includes("selection")) return create(method.input, { selection: { instanceId }, ...table });
  return undefined;
}

async function codeOf(
  service: DescService,
  method: DescMethodUnary,
  message: object,
  token: string | undefined,
) {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const client = createClient(service, transportTo(server, { headers })) as unknown as Record<
    string,
    (message: object) => Promise<unknown>
  >;
  return await client[method.localName]!(message).then(
    () => "ok" as const,
    (thrown: unknown) => ConnectError.from(thrown).code,
  );
}

test.each(methods)("%s keeps to the token's instances", async (_name, service, method) => {
  const unary = method as DescMethodUnary;
  const beta = requestOf(unary, "beta");
  expect(await codeOf(service, unary, beta ?? {}, undefined)).toBe(Code.Unauthenticated);
  expect(await codeOf(service, unary, beta ?? {}, wrong)).toBe(Code.Unauthenticated);
  if (beta !== undefined) expect(await codeOf(service, unary, beta, own)).toBe(Code.PermissionDenied);
  expect(await codeOf(service, unary, requestOf(unary, "alpha") ?? {}, own)).not.toBe(Code.PermissionDenied);
});

test("the doctor tells a token nothing of other instances, whose only run is damaged", async () => {
  const { layout } = archive;
  const shortened = { instanceId: "\u00fc".repeat(100), runId };
  const files = [layout.manifestFile({ instanceId: "beta", runId }), layout.manifestFile(shortened)];
  const text = await readFile(files[0]!);
  await mkdir(join(files[1]!, ".."));
  for (const file of files) await writeFile(file, "{");
  try {
    const names = ["control_plane", "history", "archive", "manifest", "files", "tables"];
    const passed = { ok: true, checks: names.map((name) => ({ name, ok: true, message: "" })) };
    const answer = await ask("/doctor", own);
    expect([answer.status, await answer.json()]).toEqual([200, passed]);
    const client = createClient(
      GatewayService,
      transportTo(server, { headers: { authorization: `Bearer ${own}` } }),
    );
    expect(await client.runDoctor({})).toMatchObject({ checks: passed.checks });
    const all = await (await ask("/doctor", every)).text();
    for (const told of ["runs/beta/", "runs/%C3%BC"]) expect(all).toContain(told);
  } finally {
    await writeFile(files[0]!, text);
    await rm(join(files[1]!, ".."), { recursive: true });
  }
});

test("the doctor tells a token of its own instance, whose only run is damaged", async () => {
  const file = archive.layout.manifestFile({ instanceId: "alpha", runId });
  const text = await readFile(file);
  await writeFile(file, "{");
  try {
    const answer = await ask("/doctor", own);
    expect([answer.status, await answer.text()]).toEqual([502, expect.stringContaining("runs/alpha/")]);
  } finally {
    await writeFile(file, text);
  }
});

test("a page token does not open another token's listing", async () => {
  const client = (token: string) =>
    createClient(HistoryService, transportTo(server, { headers: { authorization: `Bearer ${token}` } }));
  const selection = { instanceId: "beta", runId };
  const { nextPageToken: pageToken } = await client(every).previewTable({
    table: "fills",
    selection,
    pageSize: 5,
  });
  expect(pageToken).not.toBe("");
  const asked = (instanceId: string) =>
    client(own)
      .previewTable({ table: "fills", selection: { instanceId, runId }, pageSize: 5, pageToken })
      .then(
        () => "ok",
        (thrown: unknown) => ConnectError.from(thrown).code,
      );
  expect(await asked("beta")).toBe(Code.PermissionDenied);
  expect(await asked("alpha")).toBe(Code.InvalidArgument);
});

test("the access log says whose request it was, and holds no secret", async () => {
  log.length = 0;
  await (await ask(`/history/fills?instance=alpha&run_id=${runId}&limit=3`, own)).text();
  await (await ask(`/history/fills?instance=alpha&token=${every}`, own)).text();
  await (await ask("/instances", wrong)).text();
  expect(log).toMatchObject([
    {
      token: "alpha-desk",
      client: "127.0.0.1",
      status: 200,
      rows: 3,
      query: { instance: "alpha", limit: "3" },
    },
    { token: "alpha-desk", status: 400, query: { token: "***" } },
    { status: 401 },
  ]);
  expect(log[2]).not.toHaveProperty("token");
  const text = JSON.stringify(log);
  for (const secret of [own, every, wrong]) expect(text).not.toContain(secret);
});

const emptyToken = createHash("sha256").update("").digest("hex");

test.each([
  ["", "has no tokens"],
  ["{", "not valid"],
  ['{"name":"a","sha256":"00","instances":["*"]}', "SHA-256"],
  [`${tokenLine(own, "a", ["x"])}${tokenLine(every, "a", ["x"])}`, "appears twice"],
  [`${tokenLine(own, "a", ["x"])}${tokenLine(own, "b", ["x"])}`, "the same token as another name"],
  [tokenLine(own, "a", ["x"]).replace("{", '{"more":1,'), "more"],
  [`{"name":"a","sha256":"${emptyToken}","instances":["*"]}`, 'the token of "a" is empty'],
])("the tokens file %j is refused", (text, says) => {
  expect(() => TokenList.parse(text, "f")).toThrow(says);
});

test.each([undefined, "", "Bearer", "Bearer ", `Basic ${own}`])(
  "the header %j carries no token",
  (header) => {
    // a digest of nothing is no more than that of a token: only a token is looked up
    expect(TokenList.single("").caller(header)).toBe(null);
    expect(TokenList.single(own).caller(header)).toBe(null);
  },
);

test("a token that could be guessed is no token", () => {
  expect(() => tokenLine("short", "a", ["*"])).toThrow("at least 20");
  expect(() => tokenLine("long enough but with blanks", "a", ["*"])).toThrow("one word");
});
