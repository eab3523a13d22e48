import { randomBytes } from "node:crypto";
import { deflateRawSync, gzipSync } from "node:zlib";
import { type DescField, type DescMethodUnary, type Message, ScalarType, toBinary } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type FilterName, filterNames } from "../../src/model/profile/table.ts";
import { envelopeFault, HostileTarget, targetRun } from "../fixtures/served/hostile-target.ts";
import { fewHostileTexts, hostileTexts } from "../fixtures/served/hostile-values.ts";
import { services } from "../fixtures/served/rpc-services.ts";
import { wellMeant } from "../fixtures/served/well-meant.ts";

let target: HostileTarget;
let origin: string;
beforeAll(async () => {
  target = await HostileTarget.open();
  origin = new URL(target.url).origin;
});
afterAll(async () => {
  await target[Symbol.asyncDispose]();
});

const { instanceId } = targetRun;
const isFilter = (name: string) => filterNames.includes(name as FilterName);

const methods = services.flatMap((service) =>
  service.methods.map((method) => [`${service.typeName}/${method.name}`, method as DescMethodUnary] as const),
);
/** Connect codes for what a client did; not unknown, internal, unavailable, data_loss. */
const clientCodes = [
  "invalid_argument",
  "not_found",
  "failed_precondition",
  "out_of_range",
  "aborted",
  "resource_exhausted",
];

const integers = [0n, 1n, -1n, 2n ** 31n - 1n, 2n ** 32n - 1n, -(2n ** 31n), 2n ** 63n - 1n, -(2n ** 63n)];
/** Hostile values that fit a field on the wire. */
function valuesOf(field: DescField, texts: readonly string[]): readonly unknown[] {
  switch (field.scalar) {
    case ScalarType.STRING:
      return isFilter(field.name) ? fewHostileTexts : texts;
    case ScalarType.INT32:
      return integers.filter((n) => n === BigInt.asIntN(32, n)).map(Number);
    case ScalarType.UINT32:
      return integers.filter((n) => n === BigInt.asUintN(32, n)).map(Number);
    case ScalarType.INT64:
      return integers;
    case ScalarType.BOOL:
      return [true];
    default:
      throw new Error(`no hostile values for ${field.toString()}`);
  }
}

/** Well-meant requests with each hostile value in each of their fields, also those of the selection. */
function spoiled(method: DescMethodUnary): Message[] {
  // the methods of one table are PreviewTable's, which takes all of them
  const texts = method.name.startsWith("List") ? fewHostileTexts : hostileTexts;
  return method.input.fields.flatMap((field) => {
    if (field.fieldKind === "message") {
      return field.message.fields.flatMap((inner) =>
        valuesOf(inner, texts).map((value) => {
          const request = wellMeant(method, targetRun) as Message & Record<string, Message>;
          reflect(field.message, request[field.localName]!).set(inner, value as never);
          return request;
        }),
      );
    }
    return valuesOf(field, texts).map((value) => {
      const request = wellMeant(method, targetRun);
      reflect(method.input, request).set(field, value as never);
      return request;
    });
  });
}

test.each(methods)("%s takes no hostile value in any field for more than a value", async (path, method) => {
  const faults: string[] = [];
  for (const request of spoiled(method)) {
    const answer = await fetch(`${origin}/${path}`, {
      method: "POST",
      headers: { "content-type": "application/proto", "connect-protocol-version": "1" },
      body: toBinary(method.input, request) as Uint8Array<ArrayBuffer>,
    });
    const text = await answer.text();
    const what = JSON.stringify(request, (_, value) => (typeof value === "bigint" ? `${value}` : value));
    // rows are not words: of a page only the head can leak
    if (answer.status === 200) continue;
    const { code, details = [] } = JSON.parse(text);
    const shown = [
      text,
      ...details.map(({ value }: { value: string }) => String(Buffer.from(value, "base64"))),
    ];
    for (const leak of target.leaks(shown.join("\n"))) faults.push(`${what}: ${leak}`);
    if (!clientCodes.includes(code))
      faults.push(`${what.slice(0, 300)}: ${answer.status} ${text.slice(0, 300)}`);
    if (details.length !== 1) faults.push(`${what}: ${details.length} details`);
  }
  expect(faults).toEqual([]);
});

const text = (value: string) => Buffer.from(value);
const deep = (open: string, close: string) => text(open.repeat(30_000) + close.repeat(30_000));
/** Names, headers and bytes of bodies that are no request. None of them may be an error of the server's. */
const wrongBodies: readonly (readonly [name: string, headers: Record<string, string>, body: Buffer])[] = [
  ["random bytes", {}, Buffer.alloc(512, "\xff\x03\x80")],
  ["more random bytes", {}, randomBytes(2000)],
  ["a tag without its value", {}, Buffer.from([0x0a])],
  ["a length past the end", {}, Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f])],
  ["a length of 2^64", {}, Buffer.from([0x0a, ...Buffer.alloc(9, 0xff), 0x01])],
  ["a varint without an end", {}, Buffer.alloc(64, 0xff)],
  ["groups in groups", {}, Buffer.alloc(60_000, 0x0b)],
  ["messages in messages", {}, Buffer.alloc(60_000, Buffer.from([0x0a, 0x7f]))],
  ["text that is no UTF-8", {}, Buffer.from([0x0a, 2, 0xc3, 0x28])],
  ["fields that there are not", {}, Buffer.from([0xfa, 0x3f, 1, 65])],
  ["more than a request may have", {}, Buffer.alloc(70_000)],
  ["far more than a request may have", {}, Buffer.alloc(8_000_000)],
  ["a bomb of gzip", { "content-encoding": "gzip" }, gzipSync(Buffer.alloc(50_000_000))],
  ["no gzip", { "content-encoding": "gzip" }, text("this is no gzip")],
  ["half a gzip", { "content-encoding": "gzip" }, gzipSync(randomBytes(500)).subarray(0, 300)],
  ["a coding nobody has", { "content-encoding": "snappy" }, text("x")],
  ["deflate", { "content-encoding": "deflate" }, deflateRawSync(text("x"))],
  ["two codings", { "content-encoding": "gzip, gzip" }, gzipSync(gzipSync(text("x")))],
  ...[
    "[]",
    "null",
    "1",
    '"x"',
    "{",
    "",
    "{}{}",
    '{"__proto__":{"instanceId":"alpha"}}',
    '{"constructor":{"prototype":{"x":1}}}',
    '{"nothing":1}',
    '{"instanceId":{"toString":1}}',
    '{"instanceId":["alpha"],"selection":[]}',
    '{"selection":{"instanceId":"alpha","from":1e400}}',
    `{"pageSize":${"9".repeat(500)}}`,
    '{"pageSize":-1,"limit":-1,"tail":-1,"from":"x"}',
    '{"instanceId":"alpha","instanceId":"beta","instance_id":"x"}',
    '{"instanceId":"\\ud800"}',
    "\u0000",
  ].map((json) => [`JSON ${json.slice(0, 40)}`, { "content-type": "application/json" }, text(json)] as const),
  ["arrays in arrays", { "content-type": "application/json" }, deep("[", "]")],
  ["objects in objects", { "content-type": "application/json" }, deep('{"selection":', "}")],
  ...["text/plain", "application/json; charset=latin1", "multipart/form-data", "x", "application/grpc"].map(
    (type) => [`the type ${type}`, { "content-type": type }, text("{}")] as const,
  ),
  ["a protocol nobody has", { "connect-protocol-version": "2" }, Buffer.alloc(0)],
  ["a time-out that is none", { "connect-timeout-ms": "-5" }, Buffer.alloc(0)],
  ["a time-out without an end", { "connect-timeout-ms": "9".repeat(60) }, Buffer.alloc(0)],
];

// all methods have their bodies read in one place: each body for two of the methods, and for the busiest one all of them
const bodiesFor = methods.map(
  ([path], nth) =>
    [
      path,
      path.endsWith("/PreviewTable")
        ? wrongBodies
        : wrongBodies.filter(
            (_, index) => index % methods.length === nth || (index + 7) % methods.length === nth,
          ),
    ] as const,
);

test.each(bodiesFor)("%s takes no wrong body for a fault of its own", async (path, bodies) => {
  const faults: string[] = [];
  for (const [name, headers, body] of bodies) {
    const answer = await fetch(`${origin}/${path}`, {
      method: "POST",
      headers: { "content-type": "application/proto", "connect-protocol-version": "1", ...headers },
      body: body as Uint8Array<ArrayBuffer>,
      // a server that refuses a large body closes the connection on the rest of it
    }).catch(() => null);
    if (answer === null) {
      if (body.length < 1_000_000) faults.push(`${name}: no answer`);
      continue;
    }
    const told = await answer.text();
    const { code = "" } = JSON.parse(
      /json/.test(answer.headers.get("content-type") ?? "") ? told || "{}" : "{}",
    );
    const isDocumented = [200, 400, 404, 408, 409, 413, 415, 429, 501, 504].includes(answer.status);
    if (!isDocumented || ["internal", "unknown", "unavailable", "data_loss"].includes(code)) {
      faults.push(`${name}: ${answer.status} ${told.slice(0, 300)}`);
    }
    if (answer.status !== 200) for (const leak of target.leaks(told)) faults.push(`${name}: ${leak}`);
  }
  expect(faults).toEqual([]);
});

test("methods of HTTP that no call comes by are refused", async () => {
  for (const method of ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
    const answer = await fetch(`${origin}/example.history.v1.HistoryService/ListRuns`, { method });
    expect([method, answer.status]).toEqual([method, 405]);
  }
});

test("a lifecycle action takes no body of whatever kind", async () => {
  for (const [name, headers, body] of wrongBodies) {
    for (const action of ["start", "stop", "restart"]) {
      const answer = await fetch(`${target.url}/instances/${instanceId}/${action}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: body as Uint8Array<ArrayBuffer>,
      }).catch(() => null);
      // the rest of what is too long is not read
      if (answer === null && body.length > 1024) continue;
      const told = await answer!.text();
      const expected = body.length === 0 ? 409 : 400;
      expect([name, answer?.status, envelopeFault("/", told)]).toEqual([name, expected, ""]);
      expect(target.leaks(told)).toEqual([]);
    }
  }
});

test("after all that nothing is changed, nothing is broken, and nothing was logged as a fault of ours", async () => {
  expect(await target.trouble()).toBe("");
  const { status, stderr } = await target.stop();
  expect(status).toBe(0);
  expect(stderr).not.toMatch(/warn|error|internal|Exception/i);
});
