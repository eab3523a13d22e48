import { Code, ConnectError } from "@connectrpc/connect";
import { errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { expect, test } from "vitest";
import type { GatewayOptions } from "../../src/gateway/options.ts";
import { openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { openRpcGateway } from "../../src/gateway/rpc/rpc-gateway.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { serveHttp } from "../fixtures/source/gateway-scripted-server.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { servePages } from "../fixtures/source/rpc-scripted-pages.ts";

const request = { instanceId: "i", runId: "r", table: "fills" } as const;
const prefix = "the gateway answered 409 history_unavailable";

async function messageOf(gateway: ReturnType<typeof openRestGateway>): Promise<string> {
  await using open = gateway;
  try {
    for await (const _chunk of open.rows(request)) throw new Error("rows came");
  } catch (thrown) {
    if (thrown instanceof RunvaultError) return thrown.message;
    throw thrown;
  }
  throw new Error("no error came");
}

/** The message of our error where the gateway's envelope has this in it. */
async function told(error: object, options: Partial<GatewayOptions> = {}): Promise<string> {
  await using server = await serveHttp((_request, response) =>
    response
      .writeHead(409, { "content-type": "application/json" })
      .end(JSON.stringify({ ok: false, error: { code: "history_unavailable", ...error } })),
  );
  const baseUrl = options.baseUrl?.replace("HOST", server.url.replace("http://", "")) ?? server.url;
  return await messageOf(openRestGateway({ retry: quickRetry({ retries: 0 }), ...options, baseUrl }));
}

test("the gateway's message and hint stand behind what we say", async () => {
  expect(await told({ message: "the order book is being rebuilt", hint: "come back at six" })).toBe(
    `${prefix}: the order book is being rebuilt (its hint: come back at six)`,
  );
  expect(await told({ hint: "come back at six" })).toBe(`${prefix}: (its hint: come back at six)`);
  expect(await told({ message: "" })).toBe(prefix);
  expect(await told({ message: { text: 1 }, hint: ["x"] })).toBe(prefix);
});

test("over RPC the message of the Connect error does", async () => {
  await using server = await servePages((_request, response) =>
    response
      .writeHead(400, { "content-type": "application/json" })
      .end(errorToJsonBytes(new ConnectError("no such\n\u001b[31mbook", Code.FailedPrecondition), undefined)),
  );
  const options = { baseUrl: server.url, retry: quickRetry({ retries: 0 }) };
  expect(await messageOf(openRpcGateway(options))).toBe(
    "the gateway answered failed_precondition: no such book",
  );
});

test("what the gateway says is one line of at most 500 characters, whatever it sends", async () => {
  expect(await told({ message: "a\u0000b\r\n\tc\u001b[2J\u009b31md\u202ee\u200bf\ud800g" })).toBe(
    `${prefix}: a b cdef g`,
  );
  const long = await told({ message: "€𝄞".repeat(5000), hint: "x".repeat(5000) });
  expect([...long.slice(`${prefix}: `.length)].length).toBe(500);
  expect(long.isWellFormed()).toBe(true);
  expect(long.endsWith("…")).toBe(true);
});

test("a secret that comes back is not shown, in whichever form it comes", async () => {
  const token = "s3cret/t0ken+of=ours";
  for (const form of [token, encodeURIComponent(token), `Bearer ${token}`, "s3cret/\u200bt0ken+of=ours"]) {
    expect(await told({ message: `who is ${form}?`, hint: form }, { token })).not.toMatch(/s3cret|t0ken/);
  }
  const baseUrl = "http://operator:p4ss%20w0rd@HOST";
  const pair = Buffer.from("operator:p4ss w0rd").toString("base64");
  for (const form of ["p4ss%20w0rd", "p4ss w0rd", pair, `http://operator:p4ss%20w0rd@h/`]) {
    expect(await told({ message: `who is ${form}?` }, { baseUrl })).not.toMatch(/p4ss|w0rd/);
    expect(await told({ message: `who is ${form}?` }, { baseUrl })).not.toContain(pair);
  }
  // cut after it is cleaned, so that no half of a secret stays
  const cut = await told({ message: `${"x".repeat(490)}${token}` }, { token });
  expect(cut).not.toContain("s3c");
  const foreign = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl";
  expect(await told({ message: `expired: ${foreign}` })).toBe(`${prefix}: expired: ***`);
});
