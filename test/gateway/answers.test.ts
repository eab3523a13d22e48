import { createServer, type ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { readRetryAfterMs } from "../../src/gateway/http/retry-after.ts";
import { type GatewayOptions, openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { type ErrorCode, RunvaultError } from "../../src/model/error.ts";
import { backoffMs, type RetryInfo } from "../../src/model/retry/retry-policy.ts";
import { type ScriptedServer, serveHttp, serveRaw } from "../fixtures/source/gateway-scripted-server.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

const run = { instanceId: "i", runId: "r" };
const request = { ...run, table: "fills" } as const;
const rowsType = { "content-type": "application/x-ndjson" };
const jsonType = { "content-type": "application/json; charset=utf-8" };

async function rowsOf(url: string, options: Partial<GatewayOptions> = {}): Promise<string> {
  await using gateway = openRestGateway({ baseUrl: url, retry: quickRetry({ retries: 0 }), ...options });
  const parts: Uint8Array[] = [];
  for await (const chunk of gateway.rows(request)) parts.push(chunk);
  return Buffer.concat(parts).toString();
}

async function errorOf(work: Promise<unknown>): Promise<RunvaultError> {
  const thrown: unknown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (thrown instanceof RunvaultError) return thrown;
  throw new Error(`expected a RunvaultError, got ${String(thrown)}`);
}

/** Serves one status with a body for everything. */
function serveStatus(status: number, body: string): Promise<ScriptedServer> {
  return serveHttp((_request, response) => response.writeHead(status, jsonType).end(body));
}

/** Sends a blank every now and then, and never ends. */
function dripping(response: ServerResponse): void {
  const timer = setInterval(() => response.write(" "), 50);
  response.on("close", () => clearInterval(timer));
}

const history = (code: string) =>
  JSON.stringify({ ok: false, error: { code, message: "not for branching" } });
const control = (code: string) =>
  JSON.stringify({ error: { code, message: "m", capability: "", upstreamCode: "", hint: "" } });

const answers: [status: number, body: string, expected: ErrorCode][] = [
  [400, history("invalid_argument"), "refused"],
  [400, "bad request", "refused"],
  [401, history("unauthenticated"), "unauthenticated"],
  [401, "<html>log in</html>", "unauthenticated"],
  [403, history("permission_denied"), "permission_denied"],
  [404, history("run_not_found"), "run_not_found"],
  [404, history("instance_not_found"), "instance_not_found"],
  [404, history("resource_not_found"), "resource_not_found"],
  [404, history("route_not_found"), "route_not_found"],
  [404, control("ERROR_CODE_INSTANCE_NOT_FOUND"), "instance_not_found"],
  [404, "nothing here", "route_not_found"],
  [409, history("history_unavailable"), "history_unavailable"],
  [409, history("history_identity_conflict"), "history_identity_conflict"],
  [409, history("something_new"), "refused"],
  [409, "", "refused"],
  [413, history("limit_exceeded"), "limit_exceeded"],
  [418, history("teapot"), "refused"],
  [429, history("rate_limited"), "rate_limited"],
  [500, history("history_unavailable"), "server_error"],
  [500, history("constructor"), "server_error"],
  [502, history("history_unreachable"), "history_unreachable"],
  [502, history("history_query_failed"), "history_query_failed"],
  [502, "bad gateway", "server_error"],
  [503, "", "server_error"],
  [504, "x".repeat(200_000), "server_error"],
  [206, "{}", "not_a_gateway"],
];

for (const [status, body, expected] of answers) {
  test(`${status} with ${body.slice(0, 60) || "nothing"} is ${expected}`, async () => {
    await using server = await serveStatus(status, body);
    const error = await errorOf(rowsOf(server.url));
    expect(error.code).toBe(expected);
    expect(error.status).toBe(status);
    // what the gateway says of it is shown, and decides nothing
    expect(error.message.endsWith(": not for branching")).toBe(body.includes("not for branching"));
  });
}

for (const status of [429, 500, 502, 503, 504]) {
  test(`${status} is asked again until it is over`, async () => {
    let answered = 0;
    await using server = await serveHttp((_request, response) => {
      answered += 1;
      if (answered < 3) response.writeHead(status).end();
      else response.writeHead(200, rowsType).end('{"seq":"1"}\n');
    });
    await using gateway = openRestGateway({ baseUrl: server.url, retry: quickRetry({ retries: 3 }) });
    const parts: Uint8Array[] = [];
    for await (const chunk of gateway.rows(request)) parts.push(chunk);
    expect(Buffer.concat(parts).toString()).toBe('{"seq":"1"}\n');
    expect(gateway.stats).toEqual({ requests: 3, retries: 2, bytes: 12 });
  });
}

test("only codes that the contract knows are shown: a token that comes back as one is not", async () => {
  for (const [code, shown] of [
    ["invalid_argument", "the gateway answered 400 invalid_argument: not for branching"],
    ["s3cret_token", "the gateway answered 400 with an unknown code: not for branching"],
    ["__proto__", "the gateway answered 400 with an unknown code: not for branching"],
  ] as const) {
    await using server = await serveStatus(400, history(code));
    const error = await errorOf(rowsOf(server.url, { token: "s3cret_token" }));
    expect(error).toMatchObject({ message: shown, status: 400, exit: 9 });
    expect(error.hint).toContain("rejects this request");
  }
});

test("an error whose body drips forever is known by its status after five seconds", async () => {
  await using server = await serveHttp((_request, response) => dripping(response.writeHead(403, jsonType)));
  const started = performance.now();
  expect((await errorOf(rowsOf(server.url))).code).toBe("permission_denied");
  expect(performance.now() - started).toBeLessThan(30_000);
});

test("a document that drips forever is a timeout", async () => {
  await using server = await serveHttp((_request, response) => dripping(response.writeHead(200, jsonType)));
  await using gateway = openRestGateway({
    baseUrl: server.url,
    retry: quickRetry({ retries: 0 }),
    documentTimeoutMs: 300,
  });
  const error = await errorOf(gateway.instances());
  expect(error.code).toBe("timeout");
  expect(error.message).toContain("was still incomplete after 0.3 s");
});

test("an error that will not go away is asked for once only", async () => {
  await using server = await serveStatus(403, history("permission_denied"));
  await errorOf(rowsOf(server.url, { retry: quickRetry({ retries: 5 }) }));
  expect(server.requests.length).toBe(1);
});

// caught by: a token that lacks one table, taken for one that may read nothing, or nobody told what to do
test("a 403 concerns the table whose route answers it, and says how to leave that out", async () => {
  await using server = await serveStatus(403, history("permission_denied"));
  const error = await errorOf(rowsOf(server.url));
  expect(error).toMatchObject({ scope: "table", hint: expect.stringContaining("--tables") });
  await using gateway = openRestGateway({ baseUrl: server.url });
  expect(await errorOf(gateway.facts(run, {}))).toMatchObject({ scope: "instance" });
});

test("Retry-After in seconds is waited for, and capped", async () => {
  const seen: RetryInfo[] = [];
  await using server = await serveHttp((_request, response) =>
    response.writeHead(429, { "retry-after": "1" }).end(),
  );
  const options = { retries: 1, onRetry: (info: RetryInfo) => seen.push(info) };
  const started = performance.now();
  await errorOf(rowsOf(server.url, { retry: quickRetry(options) }));
  expect(performance.now() - started).toBeGreaterThan(990);
  await errorOf(rowsOf(server.url, { retry: quickRetry({ ...options, retryAfterMaxMs: 20 }) }));
  expect(seen.map(({ attempt, delayMs, error }) => [attempt, delayMs, error.code, error.status])).toEqual([
    [1, 1000, "rate_limited", 429],
    [1, 20, "rate_limited", 429],
  ]);
});

test("Retry-After is read as seconds or as an HTTP date, and anything else is ignored", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  expect(readRetryAfterMs("7", now)).toBe(7000);
  expect(readRetryAfterMs("Thu, 01 Jan 2026 00:00:30 GMT", now)).toBe(30_000);
  expect(readRetryAfterMs("Wed, 31 Dec 2025 00:00:30 GMT", now)).toBe(0);
  for (const other of [undefined, "", "-1", "1.5", "soon", "2026-01-01", "9".repeat(30)]) {
    expect(readRetryAfterMs(other, now)).toBeUndefined();
  }
});

test("the backoff doubles up to its maximum with full jitter, and never undercuts Retry-After", () => {
  const options = { backoffBaseMs: 100, backoffMaxMs: 1000, retryAfterMaxMs: 5000 };
  const at = (random: number) =>
    [1, 2, 3, 4, 5, 99].map((failures) =>
      backoffMs(failures, undefined, { ...options, random: () => random }),
    );
  expect(at(0)).toEqual([0, 0, 0, 0, 0, 0]);
  expect(at(0.5)).toEqual([50, 100, 200, 400, 500, 500]);
  expect(at(0.999)).toEqual([99, 199, 399, 799, 999, 999]);
  expect(backoffMs(1, 3000, { ...options, random: () => 0.5 })).toBe(3000);
  expect(backoffMs(1, 90_000, { ...options, random: () => 0.5 })).toBe(5000);
});

test("nothing listening is unreachable; something else listening is not a gateway", async () => {
  const closed = createServer();
  await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
  const { port } = closed.address() as { port: number };
  await new Promise((resolve) => closed.close(resolve));
  const instancesAt = async (baseUrl: string) => {
    await using gateway = openRestGateway({ baseUrl, retry: quickRetry({ retries: 0 }) });
    return await gateway.instances();
  };
  expect((await errorOf(instancesAt(`http://127.0.0.1:${port}`))).code).toBe("unreachable");

  await using web = await serveHttp((_request, response) =>
    response.writeHead(200, { "content-type": "text/html" }).end("<html></html>"),
  );
  const html = await errorOf(instancesAt(web.url));
  expect(html.code).toBe("not_a_gateway");
  expect(html.hint).toContain("something else may be listening there");
  await using ssh = await serveRaw((socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n"));
  expect((await errorOf(instancesAt(ssh.url))).code).toBe("not_a_gateway");
  await using good = await serveHttp((_request, response) =>
    response.writeHead(200, jsonType).end('{"instances":[]}'),
  );
  expect(await instancesAt(`${good.url}/api/v1/`)).toEqual([]);
  expect(good.requests).toEqual(["GET /api/v1/history/instances"]);
});

// by hand such a page ended the command at once
test("a page of HTML with status 200 is retried, for lists and rows", async () => {
  let pages = 0;
  await using server = await serveHttp((request, response) => {
    if (++pages % 3 !== 0) response.writeHead(200, { "content-type": "text/html" }).end("<h1>Back soon</h1>");
    else if (request.url!.endsWith("/instances")) response.writeHead(200, jsonType).end('{"instances":[]}');
    else response.writeHead(200, rowsType).end();
  });
  const retry = quickRetry({ retries: 2 });
  await using gateway = openRestGateway({ baseUrl: server.url, retry });
  expect(await gateway.instances()).toEqual([]);
  expect(await rowsOf(server.url, { retry })).toBe("");
});

test("rows of another media type are not taken for rows", async () => {
  await using server = await serveHttp((_request, response) => response.writeHead(200, jsonType).end("{}\n"));
  expect((await errorOf(rowsOf(server.url))).code).toBe("not_a_gateway");
});

test("a redirect within the origin is followed three times and no more", async () => {
  let hops = 0;
  await using server = await serveHttp((request, response) => {
    const at = Number(new URL(request.url ?? "", "http://x").searchParams.get("hop") ?? 0);
    if (at < hops) response.writeHead(307, { location: `/moved?hop=${at + 1}` }).end();
    else response.writeHead(200, rowsType).end("{}\n");
  });
  hops = 3;
  expect(await rowsOf(server.url)).toBe("{}\n");
  hops = 4;
  expect((await errorOf(rowsOf(server.url))).code).toBe("refused");
});

test("a redirect to another origin is refused, and the token does not go there", async () => {
  await using elsewhere = await serveHttp((_request, response) =>
    response.writeHead(200, rowsType).end("{}\n"),
  );
  await using server = await serveHttp((_request, response) =>
    response.writeHead(302, { location: `${elsewhere.url}/history/fills` }).end(),
  );
  const error = await errorOf(
    rowsOf(server.url, { token: "s3cret-token", retry: quickRetry({ retries: 3 }) }),
  );
  expect(error.code).toBe("refused");
  expect(elsewhere.requests).toEqual([]);
  expect(server.requests.length).toBe(1);
});

test("the token goes into its header, and neither it nor the address's password into errors and labels", async () => {
  const heads: string[] = [];
  await using server = await serveRaw((socket, _count, head) => {
    heads.push(head.toLowerCase());
    socket.end("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
  });
  const address = `http://user:p4ss%20word@127.0.0.1:${server.port}/api/v1`;
  for (const options of [
    { baseUrl: server.url, token: "s3cret" },
    { baseUrl: server.url, token: "s3cret", tokenHeader: "X-Key" },
    { baseUrl: address },
    { baseUrl: address, token: "s3cret", tokenHeader: "X-Key" },
  ]) {
    const error = await errorOf(rowsOf(server.url, options));
    expect(error.code).toBe("unauthenticated");
    const gateway = openRestGateway(options);
    const shown = [
      error.message,
      error.stack,
      JSON.stringify(error),
      error.place.url,
      error.hint,
      gateway.label,
    ];
    await gateway[Symbol.asyncDispose]();
    expect(shown.join("\n")).not.toMatch(/s3cret|p4ss|user:/);
  }
  expect(heads[0]).toContain("authorization: bearer s3cret");
  expect(heads[1]).toContain("x-key: s3cret");
  expect(heads[2]).toContain(
    `authorization: basic ${Buffer.from("user:p4ss word").toString("base64").toLowerCase()}`,
  );
  expect(heads[3]).toContain("x-key: s3cret");
});

const wrongOptions: [what: string, options: object, text: RegExp][] = [
  ["a misspelt option", { baseUrl: "http://h", retrys: 1 }, /retrys/],
  ["a negative timeout", { baseUrl: "http://h", connectTimeoutMs: -1 }, /connectTimeoutMs/],
  ["an address that is none", { baseUrl: "s3cret" }, /not a URL/],
  ["an address of another kind", { baseUrl: "ftp://s3cret@h" }, /http/],
  ["an address with a query", { baseUrl: "http://h/?token=s3cret" }, /query/],
  ["a token with a line end", { baseUrl: "http://h", token: "s3cret\n" }, /token/],
  ["a token beside a password", { baseUrl: "http://u:s3cret@h", token: "s3cret" }, /Authorization/],
  ["a certificate without its key", { baseUrl: "http://h", cert: "pem" }, /key/],
];
for (const [what, options, text] of wrongOptions) {
  test(`${what} is refused without showing it`, () => {
    const opening = () => openRestGateway(options as GatewayOptions);
    expect(opening).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    expect(opening).toThrow(text);
    expect(opening).not.toThrow(/s3cret/);
  });
}

test("an empty run id, the run id current and a filter that does not apply are refused before anything is sent", async () => {
  await using server = await serveStatus(500, "");
  await using gateway = openRestGateway({ baseUrl: server.url, retry: quickRetry({ retries: 0 }) });
  const first = (request: object) =>
    errorOf(
      gateway
        .rows(request as never)
        [Symbol.asyncIterator]()
        .next(),
    );
  for (const runId of ["", "current"]) {
    expect((await first({ ...request, runId })).code).toBe("invalid_argument");
    expect((await errorOf(gateway.facts({ ...run, runId }, {}))).code).toBe("invalid_argument");
    expect((await errorOf(gateway.document({ ...run, runId }, "summary"))).code).toBe("invalid_argument");
  }
  expect((await first({ ...request, table: "bars", filters: { account: "a" } })).code).toBe(
    "invalid_argument",
  );
  expect((await first({ ...request, limit: 0 })).code).toBe("invalid_argument");
  expect((await first({ ...request, table: "nonsense" })).code).toBe("table_unknown");
  expect(server.requests).toEqual([]);
});
