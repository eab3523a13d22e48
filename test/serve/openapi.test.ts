import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { FastifyInstance } from "fastify";
import { expect, test } from "vitest";
import { tables } from "../../src/model/profile/table.ts";
import type { ServeOptions } from "../../src/serve/server.ts";
import { type Answer, LiveWorld } from "../fixtures/served/live-world.ts";
import { ArraySource, fills } from "../fixtures/served/serve-source.ts";

// biome-ignore lint/suspicious/noExplicitAny: a document of many shapes, which the validator knows
type Json = any;

async function documentOf(world: LiveWorld): Promise<Json> {
  return (await world.ask("/openapi.json")).json();
}

/** A document in which objects have no properties but those named, as an answer that is ours has. */
function closed(value: Json): Json {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== "object" || value === null) return value;
  const inner = Object.fromEntries(Object.entries(value).map(([key, part]) => [key, closed(part)]));
  return inner.type === "object" && inner.properties !== undefined && inner.additionalProperties === undefined
    ? { ...inner, additionalProperties: false }
    : inner;
}

const validators = new Map<Json, Ajv2020>();

function validatorOf(document: Json): Ajv2020 {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  (addFormats as unknown as (given: Ajv2020) => void)(ajv);
  return ajv.addSchema({ $id: "doc", ...closed(document) });
}

/** What is wrong with a value by a schema of the document; empty when nothing is. */
function faults(document: Json, pointer: string, value: unknown): string {
  const ajv = validators.get(document) ?? validatorOf(document);
  validators.set(document, ajv);
  const check = ajv.compile({ $ref: `doc#${pointer}` });
  return check(value) ? "" : ajv.errorsText(check.errors);
}

const pointerTo = (...parts: string[]) =>
  parts.map((part) => `/${encodeURIComponent(part.replaceAll("/", "~1"))}`).join("");

test.each<[string, Partial<ServeOptions>]>([
  ["with all there is", {}],
  ["with tokens", { token: "0123456789abcdef" }],
  ["with what the interface document shows", { literal: true }],
  ["with RPC alone", { transports: ["rpc"] }],
  ["with other forms of rows", { forms: ["ndjson", "csv", "arrow-stream"] }],
])("a document %s is valid, and has the routes that are there and no others", async (_what, options) => {
  const registered = new Set<string>();
  const onApp = (message: unknown) => {
    const { fastify: app } = message as { readonly fastify: FastifyInstance };
    app.addHook("onRoute", ({ method, url, config }) => {
      if (config?.doc === "rpc") return;
      for (const one of [method].flat()) {
        registered.add(`${one.toLowerCase()} ${url.replace(/:(\w+)/g, "{$1}").replace("*", "{path}")}`);
      }
    });
  };
  subscribe("fastify.initialization", onApp);
  await using world = await LiveWorld.open({ rows: 500, serve: options });
  unsubscribe("fastify.initialization", onApp);
  const headers = { authorization: "Bearer 0123456789abcdef" };
  const document = (await world.ask("/openapi.json", { headers })).json();
  expect(await new Validator().validate(structuredClone(document))).toEqual({ valid: true });
  const documented = Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  );
  expect(documented.sort()).toEqual([...registered].sort());
  const isLiteral = options.literal === true;
  expect(documented.some((route) => route.startsWith("head "))).toBe(!isLiteral);
  expect(documented.includes("get /api/v1/history/storage")).toBe(
    !isLiteral && options.transports === undefined,
  );
  expect(document.components.securitySchemes === undefined).toBe(options.token === undefined);
  if (options.token !== undefined) expect((await world.ask("/openapi.json")).status).toBe(401);
});

/** Values that every route takes, where it takes such a parameter. */
const values: Record<string, string> = {
  instance: "alpha-1",
  run_id: "",
  from: "2020-01-01T00:00:00Z",
  to: "4000000000000000000",
  limit: "5",
  with_checksum: "true",
  table: "fills",
  tail: "3",
  follow: "false",
};
const inPath: Record<string, string> = { id: "alpha-1", port: "9100", path: "accounts/main" };

test("what every GET answers is as the document says, and its parameters are those that are taken", async () => {
  await using world = await LiveWorld.open();
  const document = await documentOf(world);
  const { origin } = new URL(world.server.url);
  const ask = async (path: string): Promise<Answer> => {
    const response = await fetch(`${origin}${path}`);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) };
  };
  let checked = 0;
  for (const [path, { get }] of Object.entries<Json>(document.paths)) {
    if (get === undefined || get.responses["101"] !== undefined) continue;
    const plain = path.replace(/\{(\w+)\}/g, (_, name) => inPath[name]!);
    const names: string[] = get.parameters
      .filter((one: Json) => one.in === "query")
      .map((one: Json) => one.name);
    const query = names.map((name) => `${name}=${encodeURIComponent(values[name] ?? "")}`);
    const answer = await ask(`${plain}?${query.join("&")}`);
    expect([path, answer.status]).toEqual([path, 200]);
    const type = answer.headers.get("content-type")!.split(";", 1)[0]!;
    expect([path, Object.keys(get.responses["200"].content)]).toEqual([path, [type]]);
    const schema = pointerTo("paths", path, "get", "responses", "200", "content", type, "schema");
    const bodies = type === "application/json" ? [answer.json()] : [];
    if (type === "application/x-ndjson") {
      const lines = answer.text.split("\n").slice(0, -1);
      bodies.push(...lines.map((line) => JSON.parse(line)));
    }
    for (const body of bodies) expect([path, faults(document, schema, body)]).toEqual([path, ""]);
    checked += bodies.length;
    const odd = await ask(`${plain}?${[...query, "odd=1"].join("&")}`);
    expect([path, odd.status]).toEqual([path, 400]);
    const name = path.includes("/history") ? "HistoryError" : "gateway.v1.ErrorEnvelope";
    expect([path, faults(document, pointerTo("components", "schemas", name), odd.json())]).toEqual([
      path,
      "",
    ]);
  }
  expect(checked).toBeGreaterThan(20 + tables.length);
});

test("a schema of the document refuses what is not so", async () => {
  await using world = await LiveWorld.open({ rows: 500 });
  const document = await documentOf(world);
  const row = (await world.ask("/history/fills?instance=alpha-1&limit=1")).json();
  const schema = pointerTo("paths", "/api/v1/history/fills", "get", "responses", "200", "content");
  const check = (given: unknown) =>
    faults(document, `${schema}${pointerTo("application/x-ndjson", "schema")}`, given);
  expect(check(row)).toBe("");
  const { seq: _seq, ...without } = row;
  for (const wrong of [without, { ...row, seq: 1 }, { ...row, price: "1e3" }, { ...row, more: 1 }]) {
    expect(check(wrong)).not.toBe("");
  }
});

test("the origin and the base address say what there is", async () => {
  await using world = await LiveWorld.open({ rows: 500 });
  const { origin } = new URL(world.server.url);
  const one = (await fetch(origin)).json();
  expect(await one).toMatchObject({ transports: ["rest", "rpc"], links: { openapi: "/openapi.json" } });
  for (const path of ["", "/"]) expect((await world.ask(path)).json()).toEqual(await one);
  for (const path of Object.values<string>(((await one) as Json).links)) {
    expect([path, (await fetch(`${origin}${path}`)).status]).toEqual([path, 200]);
  }
});

test("HEAD of rows has the head of GET, or its refusal, and reads none of them", async () => {
  const source = new ArraySource({ fills: fills(100), bars: [] });
  source.chunkBytes = 10;
  await using world = await LiveWorld.open({ rows: 500, serve: { source } });
  const both = async (query: string) => {
    const path = `/history/${query}`;
    const [get, head] = [await world.ask(path), await world.ask(path, { method: "HEAD" })];
    expect(head.text).toBe("");
    for (const name of ["content-type", "runvault-rows", "vary"]) {
      expect([name, head.headers.get(name)]).toEqual([name, get.headers.get(name)]);
    }
    expect(head.status).toBe(get.status);
    return head.status;
  };
  const run = "instance=alpha&run_id=r1";
  expect(await both(`fills?${run}`)).toBe(200);
  expect(await both(`bars?${run}`)).toBe(200);
  expect(await both(`orders?${run}`)).toBe(409);
  expect(await both("fills?instance=alpha&run_id=none")).toBe(404);
  expect(await both(`fills?${run}&limit=0`)).toBe(400);
  const before = source.ended;
  const rowsAsked: (number | undefined)[] = [];
  const rows = source.rows.bind(source);
  source.rows = (request) => {
    rowsAsked.push(request.limit);
    return rows(request);
  };
  await world.ask(`/history/fills?${run}`, { method: "HEAD" });
  expect([rowsAsked, source.ended - before]).toEqual([[1], 1]);
});
