// @module-tag slow
import { channel } from "node:diagnostics_channel";
import { gunzipSync } from "node:zlib";
import { fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";
import { parseFault } from "../../src/faults/fault.ts";
import { PreviewTableResponseSchema } from "../../src/gen/example/history/v1/history_service_pb.ts";
import { connectCodeNames } from "../../src/model/connect-code-names.ts";
import type { RequestLogEntry } from "../../src/serve/monitoring/request-log.ts";
import { type Served, type ServeOptions, serve } from "../../src/serve/server.ts";
import { maxPageBytes } from "../../src/serve/wire-hook.ts";
import { dialects, failure, historyClient, lineOf, pagesOf } from "../fixtures/served/rpc-clients.ts";
import { rawPost } from "../fixtures/served/serve-raw-client.ts";
import { ArraySource, fills, rowOf } from "../fixtures/served/serve-source.ts";
import { withFaults } from "../fixtures/served/served-faults.ts";

const open: Served[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((served) => served.close()));
});

const source = new ArraySource({ fills: fills(10), bars: [rowOf("bars", { seq: "1", ts_event: "5" })] });
const lines = source.lines("fills");
const run = { instanceId: "alpha", runId: "r1" };

async function faulty(faults: string[], options: Partial<ServeOptions> = {}): Promise<Served> {
  const server = await serve({
    source,
    host: "127.0.0.1",
    port: 0,
    wire: withFaults(...faults),
    ...options,
  });
  open.push(server);
  return server;
}

const path = "/example.history.v1.HistoryService/PreviewTable";
const ask = { table: "fills", selection: { instance_id: "alpha", run_id: "r1" } };
/** PreviewTable of all fills in binary: table, and the selection with its two ids. */
const asked = Buffer.from("\x0a\x05fills\x12\x0b\x0a\x05alpha\x12\x02r1");

function posted(server: Served, headers: Record<string, string> = {}) {
  return rawPost(`${new URL(server.url).origin}${path}`, asked, {
    "content-type": "application/proto",
    ...headers,
  });
}

test.each(dialects)(
  "a page is sent again in place of the next one, with a token that goes on, in %s",
  async (dialect) => {
    const server = await faulty(["page-repeat@fills:2"]);
    const client = historyClient(server, { dialect });
    const pages = await pagesOf(client, "fills", { pageSize: 3 });
    expect(pages).toEqual([lines.slice(0, 3), lines.slice(3, 6), lines.slice(3, 6), lines.slice(9)]);
    expect((await pagesOf(client, "fills", { pageSize: 3 })).flat()).toEqual(lines);
  },
);

test.each([
  ["status-409@fills", { code: Code.Aborted, history: "history_identity_conflict" }],
  ["status-409@fills:history_incomplete", { code: Code.FailedPrecondition, history: "history_incomplete" }],
  ["absent@fills", { code: Code.FailedPrecondition, history: "history_unavailable" }],
])("%s refuses rows over RPC", async (fault, refusal) => {
  const client = historyClient(await faulty([fault]));
  expect(await failure(client.previewTable({ table: "fills", selection: run }))).toEqual(refusal);
  expect(await failure(client.listRecentFills({ selection: run }))).toEqual(refusal);
  const { tables } = await client.getStorageFacts(run);
  expect(tables.some(({ table }) => table === "fills")).toBe(!fault.startsWith("absent"));
});

test("a token expires behind its page, once", async () => {
  const client = historyClient(await faulty(["token-expired@fills:2"]));
  const refused = { code: Code.InvalidArgument, history: "invalid_argument" };
  expect(await failure(pagesOf(client, "fills", { pageSize: 4 }))).toEqual(refused);
  expect((await pagesOf(client, "fills", { pageSize: 4 })).flat()).toEqual(lines);
});

test("a page is too large, once, and its rows are all there", async () => {
  const server = await faulty(["page-too-large@fills:1"]);
  const { body, isWhole } = await posted(server);
  expect([isWhole, body.length > maxPageBytes]).toEqual([true, true]);
  const { rows } = fromBinary(PreviewTableResponseSchema, body);
  expect(rows.map(({ row }) => lineOf("fills", row.value))).toEqual(lines);
  expect((await posted(server)).body.length).toBeLessThan(10_000);
});

test.each(connectCodeNames)(
  "connect-error answers %s as often as told, on tables and documents",
  async (name) => {
    const server = await faulty([`connect-error@fills:${name}*2`, `connect-error@storage:${name}`]);
    const client = historyClient(server);
    const list = () => failure(client.previewTable({ table: "fills", selection: run }));
    const code =
      Code[name.replaceAll(/(?:^|_)(.)/g, (_all, letter: string) => letter.toUpperCase()) as "Aborted"];
    expect([await list(), await list(), await list()]).toEqual([
      { code, history: "" },
      { code, history: "" },
      "ok",
    ]);
    expect(await failure(client.getStorageFacts(run))).toEqual({ code, history: "" });
    expect(await failure(client.getStorageFacts(run))).toBe("ok");
  },
);

test("deadline answers nothing until the client's deadline, or until it leaves", async () => {
  const server = await faulty(["deadline@fills", "deadline@summary*2"]);
  const client = historyClient(server, { defaultTimeoutMs: 50 });
  expect(await failure(pagesOf(client, "fills"))).toMatchObject({ code: Code.DeadlineExceeded });
  // the server itself says so too
  const headers = { "connect-timeout-ms": "20", "content-type": "application/json" };
  const url = `${new URL(server.url).origin}/example.history.v1.HistoryService/GetSummary`;
  const summary = { method: "POST", headers, body: JSON.stringify({ instance_id: "alpha" }) };
  const answer = await fetch(url, summary);
  expect([answer.status, await answer.json()]).toMatchObject([504, { code: "deadline_exceeded" }]);
  const leaving = new AbortController();
  const call = fetch(url, {
    ...summary,
    headers: { "content-type": "application/json" },
    signal: leaving.signal,
  });
  setTimeout(() => leaving.abort(), 20);
  await expect(call).rejects.toThrow();
  // had the client left before its request was there, the fault would still wait for one
  const { status } = await fetch(url, summary);
  expect(status === 504 ? (await fetch(url, summary)).status : status).toBe(200);
});

test("closing the server ends a call that nothing answers", async () => {
  const server = await faulty(["deadline@fills*100"]);
  const asked = new Promise((resolve) => channel("http.server.request.start").subscribe(resolve));
  const call = failure(pagesOf(historyClient(server), "fills"));
  await asked;
  await server.close();
  expect(await call).not.toBe("ok");
});

test("a message is cut in its middle, on the socket or as if it were complete", async () => {
  const whole = (await posted(await faulty([]))).body;
  for (const [fault, isWhole] of [
    ["cut-bytes@fills:500", false],
    ["cut-bytes-clean@fills:500", true],
  ] as const) {
    const log: RequestLogEntry[] = [];
    const server = await faulty([fault], { onRequest: (entry) => log.push(entry) });
    const cut = await posted(server);
    expect([cut.status, cut.isWhole]).toEqual([200, isWhole]);
    expect(cut.body.equals(whole.subarray(0, 500))).toBe(true);
    expect(() => fromBinary(PreviewTableResponseSchema, cut.body)).toThrow();
    expect(log[0]).toMatchObject({ ending: isWhole ? "whole" : "cut", bytes: 500, rows: 10 });
    expect((await posted(server)).body.equals(whole)).toBe(true);
  }
  for (const dialect of dialects) {
    for (const fault of ["cut-bytes@fills:500", "cut-bytes-clean@fills:500"]) {
      const client = historyClient(await faulty([fault]), { dialect });
      expect(await failure(pagesOf(client, "fills"))).not.toBe("ok");
      expect((await pagesOf(client, "fills")).flat()).toEqual(lines);
    }
  }
});

test("a page ends early as if it were the last, and one stalls in its middle", async () => {
  const client = historyClient(await faulty(["cut-clean@fills:4"]));
  expect(await pagesOf(client, "fills")).toEqual([lines.slice(0, 4)]);
  expect(await pagesOf(client, "fills")).toEqual([lines]);
  const impatient = historyClient(await faulty(["stall@fills:2"]), { defaultTimeoutMs: 100 });
  expect(await failure(pagesOf(impatient, "fills"))).toMatchObject({ code: Code.DeadlineExceeded });
  expect((await pagesOf(impatient, "fills")).flat()).toEqual(lines);
});

test("refusals that REST has come as the nearest Connect code, Retry-After with them", async () => {
  const client = historyClient(
    await faulty(["rate-limit@fills:7", "status-500@summary", "status-502@storage", "rate-limit@instances"]),
  );
  const refused = await client.previewTable({ table: "fills", selection: run }).then(
    () => undefined,
    (error) => ConnectError.from(error),
  );
  expect([refused?.code, refused?.metadata.get("retry-after")]).toEqual([Code.ResourceExhausted, "7"]);
  expect(await failure(client.getSummary(run))).toEqual({ code: Code.Internal, history: "internal" });
  expect(await failure(client.getStorageFacts(run))).toEqual({
    code: Code.Unavailable,
    history: "history_unreachable",
  });
  expect(await failure(client.listInstances({}))).toMatchObject({ history: "rate_limited" });
  expect((await pagesOf(client, "fills")).flat()).toEqual(lines);
});

test.each([false, true])(
  "rows have an unknown field or one twice, at their place, cursor lost: %s",
  async (isLost) => {
    const server = await faulty(
      ["unknown-field@fills:5", "field-twice@fills:7,symbol", "field-twice@fills:8"],
      {
        cursorIdleMs: isLost ? 0 : 60_000,
      },
    );
    const between = () => (isLost ? new Promise((resolve) => setTimeout(resolve, 5)) : undefined);
    for (const options of [{ pageSize: 3 }, { pageSize: 0 }, { pageSize: 2, from: 1030n }]) {
      const client = historyClient(server);
      const numbers = new Map<string, number[]>();
      const seen: string[] = [];
      for (let pageToken = ""; ; ) {
        const { pageSize, ...bounds } = options;
        const selection = { ...run, ...bounds };
        const page = await client.previewTable({ table: "fills", selection, pageSize, pageToken });
        for (const { row } of page.rows) {
          if (row.case !== "fill") throw new Error(`a row of ${row.case}`);
          const { seq, symbol, $unknown = [] } = row.value;
          seen.push(`${seq} ${symbol}`);
          numbers.set(
            String(seq),
            $unknown.map(({ no }) => no),
          );
        }
        pageToken = page.nextPageToken;
        if (pageToken === "") break;
        await between();
      }
      // the last of two values is the one that a reader of messages sees
      expect(seen.slice(-6)).toEqual(["5 BTC", "6 ETH", "7 7", "77 ETH", "9 BTC", "10 ETH"]);
      expect([...numbers].filter(([, found]) => found.length > 0)).toEqual([["5", [1000]]]);
    }
  },
);

test("faults of rows and facts that REST shows are those that RPC shows", async () => {
  const shown = async (fault: string, options = {}) =>
    (await pagesOf(historyClient(await faulty([fault])), "fills", options)).flat();
  const field = (line: string | undefined, name: string) => JSON.parse(line ?? "{}")[name];
  expect(await shown("repeat@fills:4", { pageSize: 4 })).toEqual([...lines.slice(0, 4), ...lines.slice(3)]);
  expect(await shown("out-of-order@fills:4")).toEqual([
    ...lines.slice(0, 3),
    lines[4],
    lines[3],
    ...lines.slice(5),
  ]);
  expect(field((await shown("foreign-run@fills:2"))[1], "run_id")).toBe("r1-foreign");
  expect(field((await shown("out-of-bounds@fills:2", { from: 1000n, to: 1050n }))[1], "ts_event")).toBe(
    "1050",
  );
  expect(field((await shown("decimals@fills:2"))[1], "price")).toBe("1.123456789012");
  expect(await shown("cap@fills:6", { pageSize: 4 })).toEqual(lines.slice(0, 6));
  expect(
    (await shown("tie-cap@fills:3,4,3", { from: 1020n })).map((line) => field(line, "ts_event")),
  ).toEqual(["1020", "1020", "1020"]);
  expect(await shown("late@fills:3,2,9")).toEqual([...lines.slice(0, 2), ...lines.slice(4)]);
  const client = historyClient(await faulty(["facts-disagree@fills:5"]));
  expect((await client.getStorageFacts(run)).tables[0]?.rows).toBe(15n);
});

test.each(["malformed", "wrong-type", "number", "missing-key"])(
  "%s, which messages cannot show, fails the page by the name of its row",
  async (kind) => {
    const server = await faulty([`${kind}@fills:3`]);
    await expect(pagesOf(historyClient(server), "fills")).rejects.toMatchObject({
      code: Code.Internal,
      message: expect.stringContaining("row 3 of the rows of fills of alpha/r1 does not fit"),
    });
    expect(await pagesOf(historyClient(server), "bars")).toHaveLength(1);
  },
);

test("answers are compressed however small, where the client takes it", async () => {
  const server = await faulty(["compress-small@fills"]);
  const whole = (await posted(await faulty([]))).body;
  const small = await posted(server, { "accept-encoding": "br, gzip" });
  expect(small.head).toContain("content-encoding: gzip");
  expect(small.head).toContain(`content-length: ${small.body.length}`);
  expect(gunzipSync(small.body).equals(whole)).toBe(true);
  expect((await posted(server)).body.equals(whole)).toBe(true);
  expect((await pagesOf(historyClient(server), "fills", { pageSize: 1 })).flat()).toEqual(lines);
});

test("faults of RPC alone leave REST as it is", async () => {
  const server = await faulty([
    "page-repeat@fills:1",
    "token-expired@fills:1",
    "page-too-large@fills:1",
    "connect-error@fills:internal",
    "deadline@fills",
    "field-twice@fills:1",
    "compress-small@fills",
  ]);
  const response = await fetch(`${server.url}/history/fills?instance=${ask.selection.instance_id}&run_id=r1`);
  expect(await response.text()).toBe(`${lines.join("\n")}\n`);
});

test.each([
  "connect-error@fills",
  "connect-error@fills:503",
  "connect-error@fills:constructor",
  "page-repeat@fills:0",
  "page-repeat@storage:1",
  "field-twice@fills:1,nothing",
  "deadline@fills:3",
])("%s is refused as a fault", (text) => {
  expect(() => parseFault(text)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
});
