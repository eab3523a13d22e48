import { expect, test } from "vitest";
import { openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { serveHttp } from "../fixtures/source/gateway-scripted-server.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import {
  array,
  fillsRoute,
  itemsText,
  profileOf,
  read,
  rowsOf,
  serveJson,
} from "../fixtures/source/rest-profile.ts";

const run = { instanceId: "alpha", runId: "run-1" };
const failed = (code: string) => ({ ok: false, error: { code, message: "shard 2 is down" } });
const entry = {
  ...{ run_id: "r1", instance_id: "alpha", status: "FINISHED" },
  ts_started: "1",
  ts_ended: "2",
};

/** What a gateway says whose answers are these chunks, each sent when the one before is on its way. */
async function answered(type: string, chunks: readonly string[], retries = 0) {
  const server = await serveHttp(async (_request, response) => {
    response.writeHead(200, { "content-type": type });
    for (const chunk of chunks) {
      response.write(chunk);
      await new Promise((resolve) => setImmediate(resolve));
    }
    response.end();
  });
  const gateway = openRestGateway({ baseUrl: server.url, retry: quickRetry({ retries }) });
  const rows = async () => {
    let text = "";
    try {
      for await (const chunk of gateway.rows({ ...run, table: "fills" })) text += Buffer.from(chunk);
    } catch (thrown) {
      if (!(thrown instanceof RunvaultError)) throw thrown;
      const { code, message } = thrown;
      return { text, code, message };
    }
    return { text };
  };
  return {
    ...{ server, gateway, rows },
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

// caught by: a list or facts of which a shard is missing, taken for whole because its status is 200
test.each(["runs", "facts", "document"] as const)("ok: false in %s is the gateway's error", async (what) => {
  const json = { runs: [{ ...entry, final: true }], tables: [], ...failed("history_unreachable") };
  await using one = await answered("application/json", [JSON.stringify(json)], 1);
  const { gateway, server } = one;
  const asked = {
    runs: () => gateway.runs("alpha"),
    facts: () => gateway.facts(run, {}),
    document: () => gateway.document(run, "summary"),
  };
  await expect(asked[what]()).rejects.toMatchObject({
    code: "history_unreachable",
    status: 502,
    message: "the gateway sent the error history_unreachable with status 200: shard 2 is down",
  });
  expect(server.requests).toHaveLength(2);
});

// caught by: a code that nobody knows, or none, taken for a success
test.each([
  [
    '{"runs":[],"ok" : false,"error":{"code":"odd","message":"no"}}',
    "the gateway sent an error with status 200: no",
  ],
  ['{"runs":[],"ok":false}', "the gateway sent an error with status 200"],
])("ok: false is an error without a known code: %s", async (text, message) => {
  await using one = await answered("application/json", [text]);
  await expect(one.gateway.runs("alpha")).rejects.toMatchObject({ code: "server_error", message });
});

// caught by: an alarm for a document that says that all is well, or speaks of something else
test("a document that says ok: true, or has ok: false further inside, is taken", async () => {
  const json = { ok: true, runs: [{ ...entry, final: true, checks: { ok: false } }] };
  await using one = await answered("application/json", [JSON.stringify(json)]);
  expect(await one.gateway.runs("alpha")).toMatchObject([{ runId: "r1" }]);
});

const line = `${JSON.stringify(failed("history_unreachable"))}\n`;
const row = '{"seq":"1","ts_event":"5"}\n';

// caught by: rows that are blamed for what is the gateway's own error
test.each([
  ["alone", [line], ""],
  ["between rows", [row + line + row], row],
  ["between rows, in pieces", [row + line.slice(0, 9), line.slice(9) + row + row], row + line.slice(0, 9)],
  ["behind rows", [row + row, row + line], row + row + row],
  [
    "in pieces",
    [row + line.slice(0, 9), line.slice(9, 30), `${line.slice(30)}\n \n`],
    row + line.slice(0, 30),
  ],
  ["without a line end", [row, line.trimEnd()], row],
])("an error as a line of rows is the gateway's: %s", async (_, chunks, text) => {
  await using one = await answered("application/x-ndjson", chunks);
  const message = "the gateway sent the error history_unreachable in place of a row: shard 2 is down";
  const came = await one.rows();
  expect(came).toMatchObject({ code: "history_unreachable", message });
  expect(text.startsWith(came.text)).toBe(true);
});

// caught by: an error that comes first, which nobody asks again for
test("an error as the first line is retried", async () => {
  await using one = await answered("application/x-ndjson", [line], 2);
  await one.rows();
  expect(one.server.requests).toHaveLength(3);
});

// caught by: the media type blamed, where a document says what failed
test("an error document where rows belong is the gateway's error", async () => {
  await using one = await answered("application/json", [line]);
  expect(await one.rows()).toMatchObject({ code: "history_unreachable" });
});

// caught by: a row with such a field, taken for an error
test("a row that has a field ok is a row", async () => {
  const odd = '{"ok":false,"error":"","seq":"1"}\n{"ok":false,"error":null}\n';
  await using one = await answered("application/x-ndjson", [odd]);
  expect(await one.rows()).toEqual({ text: odd });
});

// caught by: rows in a document of a profile's gateway, taken for all of them
test("ok: false beside the rows of a document is an error", async () => {
  const rows = rowsOf(1000);
  await using server = await serveJson(() => ({ body: itemsText(rows, failed("odd")) }));
  const profile = profileOf({ tables: { fills: fillsRoute({ rows: array }) } });
  const { error } = await read(server, profile);
  expect(error).toMatchObject({ code: "server_error" });
});
