import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import type { GatewayOptions } from "../../src/gateway/options.ts";
import { loadProfile, readProfile } from "../../src/gateway/profile/load-profile.ts";
import { profileText } from "../../src/gateway/profile/profile-text.ts";
import { Corvid, type CorvidFaults, corvidProfile } from "../fixtures/foreign/corvid/corvid.ts";
import { judged, trueLines } from "../fixtures/foreign/foreign-truth.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

let folder: string;
let text: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-rpc-profile-"));
  text = await readFile(corvidProfile, "utf8");
  await cp(join(dirname(corvidProfile), "corvid.binpb"), join(folder, "corvid.binpb"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

let profiles = 0;
/** The profile of corvid with a part of its text replaced. */
async function changed(part: string, by: string): Promise<string> {
  expect(text.split(part).length).toBe(2);
  const file = join(folder, `${++profiles}.yaml`);
  await writeFile(file, text.replace(part, by));
  return file;
}

async function linesOf(
  table: "fills" | "factors",
  faults: CorvidFaults = {},
  file = corvidProfile,
  options: Partial<GatewayOptions> = {},
) {
  await using corvid = await Corvid.open(faults);
  const profile = await loadProfile(file);
  const notices: string[] = [];
  await using gateway = openGateway(
    {
      baseUrl: corvid.url,
      profile,
      retry: quickRetry(),
      onNotice: (notice) => notices.push(notice),
      ...options,
    },
    "auto",
  );
  const chunks: Uint8Array[] = [];
  for await (const chunk of gateway.rows({ ...judged, table })) chunks.push(chunk);
  const lines = Buffer.concat(chunks).toString("utf8").split("\n").slice(0, -1);
  return { lines, notices, corvid, stats: { ...gateway.stats } };
}

/** A mistake, the line it is on and what is said of it. */
const mistakes: readonly (readonly [what: string, part: string, by: string, said: RegExp])[] = [
  [
    "a method",
    "Tape.ListTrades",
    "Tape.ListTrade",
    /is not a method.*Did you mean corvid\.tape\.v1\.Tape\.ListTrades\?/,
  ],
  [
    "a method of another package",
    "corvid.tape.v1.Tape.ListSignals",
    "acme.Tape.ListSignals",
    /Did you mean corvid/,
  ],
  [
    "a method that streams",
    "Tape.ListTrades",
    "Tape.WatchTrades",
    /a streaming method, which runvault cannot yet read/,
  ],
  ["a field of the request", "limit: max_items", "limit: max_item", /Did you mean max_items\?/],
  [
    "a field inside a message",
    "        from: window.since\n",
    "        from: window.sinc\n",
    /Did you mean since\?/,
  ],
  [
    "a field of another kind",
    "        run: scope.session\n",
    "        run: max_items\n",
    /is int32 .*runvault cannot yet send here/,
  ],
  ["the rows", "rows: trades", "rows: trade", /Did you mean trades\?/],
  ["rows that are none", "rows: trades", "rows: page", /rows must be a repeated message/],
  ["the next token", "next: page.next", "next: page.nxt", /Did you mean next\?/],
  ["a token that is no string", "next: page.next", "next: page.looked_at", /can read only a string as token/],
  ["a column's field", "price: px.value", "price: px.valu", /Did you mean value\?/],
  ["a column's message", "price: px.value", "price: px", /Name a field inside it: px\.value/],
  ["a column that nothing gives", "      price: px.value\n", "", /has no entry for the column price/],
  ["a list for a column", "price: px.value", "price: flags", /a list; runvault cannot yet read that/],
  ["a bool without words", "{ from: maker, words: { true: MAKER, false: TAKER } }", "maker", /Add words/],
  [
    "a word that the enum has not",
    "DIRECTION_SELL: SELL",
    "DIRECTION_SEL: SELL",
    /Did you mean DIRECTION_SELL\?/,
  ],
  [
    "a unit beside a Timestamp",
    "ts_event: at\n",
    "ts_event: { from: at, unit: ms }\n",
    /a Timestamp has its own/,
  ],
  ["a document's list", "list: sessions", "list: session", /Did you mean sessions\?/],
  ["a document's field", "ended: closed", "ended: close", /Did you mean closed\?/],
  ["descriptors that are not there", "corvid.binpb", "other.binpb", /does not exist/],
  ["descriptors that are none", "corvid.binpb", "1.yaml", /is not a descriptor set/],
  ["rows that cannot be read", "Tape.ListTrades", "Tape.ListOddities", /Did you mean|oddities/],
  [
    "a table without a route",
    "    factors:\n      method: corvid.tape.v1.Tape.ListSignals\n",
    "    bars:\n      method: corvid.tape.v1.Tape.ListSignals\n",
    /neither a path nor a method/,
  ],
  [
    "pages of rows without numbers and bounds",
    "        to: window.until\n",
    "",
    /cannot yet rule out duplicate rows where pages meet/,
  ],
];

test.each(mistakes)(
  "a mistake in %s is told with its line and the way out",
  async (_what, part, by, said) => {
    const { profile, faults } = await readProfile(await changed(part, by));
    expect(profile).toBeNull();
    expect(faults.map(({ message, hint }) => `${message} ${hint}`).join("\n")).toMatch(said);
    expect(faults.every(({ line }) => line !== null && line > 1)).toBe(true);
  },
);

test("a profile with RPC is printed as one that is read the same", async () => {
  const profile = await loadProfile(corvidProfile);
  const file = join(folder, "printed.yaml");
  await writeFile(file, profileText(profile));
  const again = await loadProfile(file);
  const plain = (value: object) =>
    JSON.stringify(value, (key, inside) => (key === "method" || key === "row" ? String(inside) : inside));
  expect(plain({ ...again, file: "" })).toEqual(plain({ ...profile, file: "" }));
});

describe("rows", () => {
  test("are the same straight from the wire as by way of JSON, fields that nobody knows among them", async () => {
    const slowly = await changed(
      "      run_id: session\n",
      "      run_id: session\n      account: { from: account, words: { A-1: A-1, A-2: A-2 } }\n",
    );
    const frozen = await changed(
      "  factors:\n    columns:\n",
      "  factors:\n    fields: freeze\n    columns:\n",
    );
    for (const faults of [{}, { newFields: true }]) {
      const straight = await linesOf("factors", faults);
      expect((await linesOf("factors", faults, slowly)).lines).toEqual(straight.lines);
      const run = straight.corvid.runs[0]!;
      const extra = "newFields" in faults ? ',"extra":{"#99":"mAYq"}}' : "}";
      expect(straight.lines).toEqual(
        trueLines("factors", run, run.tables.get("factors")!).map((line) => line.slice(0, -1) + extra),
      );
    }
    expect((await linesOf("factors", {}, frozen)).lines).toEqual((await linesOf("factors")).lines);
    await expect(linesOf("factors", { newFields: true }, frozen)).rejects.toMatchObject({
      code: "malformed_row",
    });
  });

  test("may come in messages compressed by gzip", async () => {
    const plain = await linesOf("fills");
    const zipped = await linesOf("fills", { encoding: "gzip" }, corvidProfile, { compressed: true });
    expect(zipped.lines).toEqual(plain.lines);
    expect(zipped.corvid.headers[0]).toMatchObject({
      "grpc-accept-encoding": "gzip,identity",
      te: "trailers",
    });
  });

  test("are asked for with the token, and over a proxy by CONNECT", async () => {
    const asked: string[] = [];
    const proxy = createServer();
    proxy.on("connect", (request, socket) => {
      asked.push(request.url ?? "");
      const [host = "", port = ""] = (request.url ?? "").split(":");
      const onward = connect(Number(port), host, () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        onward.pipe(socket).pipe(onward);
      });
      onward.on("error", () => socket.destroy());
      socket.on("error", () => onward.destroy());
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const before = process.env.http_proxy;
    process.env.http_proxy = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    try {
      const { lines, corvid, stats } = await linesOf("factors", {}, corvidProfile, {
        proxyLoopback: true,
        token: "t0",
      });
      expect(lines.length).toBe(corvid.runs[0]!.tables.get("factors")!.length);
      expect(asked).toEqual([expect.stringMatching(/^127\.0\.0\.1:\d+$/)]);
      expect(corvid.headers.every((headers) => headers.authorization === "Bearer t0")).toBe(true);
      expect(stats.requests).toBe(corvid.calls.length);
    } finally {
      if (before === undefined) delete process.env.http_proxy;
      else process.env.http_proxy = before;
      proxy.closeAllConnections();
      proxy.close();
    }
  });

  test("of a server that speaks no HTTP/2 are no gateway's", async () => {
    const server = createServer((_request, response) => response.end("hello"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const profile = await loadProfile(corvidProfile);
    await using gateway = openGateway(
      { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, profile, retry: quickRetry() },
      "auto",
    );
    await expect(gateway.instances()).rejects.toMatchObject({ code: "not_a_gateway" });
    server.closeAllConnections();
    server.close();
  });
});
