// @module-tag slow
import { setTimeout as sleep } from "node:timers/promises";
import zlib from "node:zlib";
import { afterEach, expect, test } from "vitest";
import { ArmedFaults } from "../../src/faults/armed-faults.ts";
import { faultGrammar, faultKinds, parseFault } from "../../src/faults/fault.ts";
import { wireFaults } from "../../src/faults/wire-faults.ts";
import { rowHash } from "../../src/row/row-hash.ts";
import type { RequestLogEntry } from "../../src/serve/monitoring/request-log.ts";
import { type Served, type ServeOptions, serve } from "../../src/serve/server.ts";
import { rawGet } from "../fixtures/served/serve-raw-client.ts";
import { ArraySource, fills, rowOf } from "../fixtures/served/serve-source.ts";
import { withFaults } from "../fixtures/served/served-faults.ts";

const open: Served[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((served) => served.close()));
});

const source = new ArraySource({ fills: fills(10), bars: [rowOf("bars", { seq: "1", ts_event: "5" })] });
const lines = source.lines("fills");

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

function urlOf(server: Served, query = "", table = "fills"): string {
  return `${server.url}/history/${table}?instance=alpha&run_id=r1&${query}`;
}

async function rows(server: Served, query = "", table = "fills"): Promise<string[]> {
  const response = await fetch(urlOf(server, query, table));
  expect(response.status).toBe(200);
  return (await response.text()).split("\n").slice(0, -1);
}

async function facts(server: Served, query = "", table = "fills") {
  const response = await fetch(`${server.url}/history/storage?instance=alpha&run_id=r1&${query}`);
  const document = (await response.json()) as { tables: Record<string, unknown>[] };
  return document.tables.find((entry) => entry.table === table);
}

const field = (line: string | undefined, name: string) => JSON.parse(line ?? "{}")[name];

test("cut drops the connection after its row, once, without the end of the body", async () => {
  const server = await faulty(["cut@fills:4"]);
  const cut = await rawGet(urlOf(server));
  expect([cut.status, cut.isWhole, cut.body.toString()]).toEqual([
    200,
    false,
    `${lines.slice(0, 4).join("\n")}\n`,
  ]);
  const again = await rawGet(urlOf(server));
  expect([again.isWhole, again.body.toString()]).toEqual([true, `${lines.join("\n")}\n`]);
});

test("cut waits for an answer that long, and hits as often as told", async () => {
  const server = await faulty(["cut@*:4*2"]);
  expect((await rawGet(urlOf(server, "limit=3"))).isWhole).toBe(true);
  expect((await rawGet(urlOf(server, "limit=4"))).isWhole).toBe(false);
  expect((await rawGet(urlOf(server))).isWhole).toBe(false);
  expect((await rawGet(urlOf(server))).isWhole).toBe(true);
});

test("cut at row 0 sends the head and nothing else", async () => {
  const cut = await rawGet(urlOf(await faulty(["cut@fills:0"])));
  expect([cut.status, cut.isWhole, cut.body.length]).toEqual([200, false, 0]);
});

test("cut-clean ends at a line end as if the answer were complete", async () => {
  expect(await rows(await faulty(["cut-clean@fills:3"]))).toEqual(lines.slice(0, 3));
});

test("a small stream can be cut after every byte", async () => {
  const body = Buffer.from(`${lines.slice(0, 2).join("\n")}\n`);
  const server = await faulty(
    Array.from({ length: body.length + 1 }, (_, at) => `cut-bytes@fills:${body.length - at}`),
  );
  for (let at = 0; at <= body.length; at += 1) {
    const cut = await rawGet(urlOf(server, "limit=2"));
    expect([at, cut.isWhole, cut.body.equals(body.subarray(0, at))]).toEqual([at, false, true]);
  }
  expect((await rawGet(urlOf(server, "limit=2"))).isWhole).toBe(true);
});

test("cut-bytes-clean ends the body in the middle of a row as if it were complete", async () => {
  const cut = await rawGet(urlOf(await faulty(["cut-bytes-clean@fills:100"])));
  expect([cut.isWhole, cut.body.length]).toEqual([true, 100]);
});

test("stall keeps the connection open and silent after its row", async () => {
  const server = await faulty(["stall@fills:2"]);
  const response = await fetch(urlOf(server), { signal: AbortSignal.timeout(5000) });
  const reader = response.body!.getReader();
  let text = "";
  while (text.split("\n").length <= 2) text += Buffer.from((await reader.read()).value ?? []).toString();
  expect(text).toBe(`${lines.slice(0, 2).join("\n")}\n`);
  const more = reader.read().then(() => "more");
  expect(await Promise.race([more, sleep(150, "silence")])).toBe("silence");
  await reader.cancel();
  expect(await rows(server)).toEqual(lines);
});

test("closing the server ends a stalled answer", async () => {
  const server = await faulty(["stall@fills:2"]);
  const { body } = await fetch(urlOf(server));
  const reader = body!.getReader();
  expect(await reader.read()).toMatchObject({ done: false });
  await server.close();
  const rest = async () => {
    while (!(await reader.read()).done);
  };
  await expect(rest()).rejects.toThrow();
});

test("rate-limit answers 429 with Retry-After, once", async () => {
  const server = await faulty(["rate-limit@fills:7"]);
  const response = await fetch(urlOf(server));
  expect([response.status, response.headers.get("retry-after")]).toEqual([429, "7"]);
  expect(await response.json()).toMatchObject({ ok: false, error: { code: "rate_limited" } });
  expect(await rows(server)).toEqual(lines);
});

test("delay holds each answer back, in whole", async () => {
  const server = await faulty(["delay@fills:150", "delay@storage:150"]);
  const took = async (path: string) => {
    const began = performance.now();
    const response = await fetch(path);
    expect(response.status).toBe(200);
    await response.arrayBuffer();
    return performance.now() - began;
  };
  const storage = `${server.url}/history/storage?instance=alpha&run_id=r1`;
  // a timer may fire a millisecond early
  for (const path of [urlOf(server), urlOf(server), storage]) expect(await took(path)).toBeGreaterThan(145);
  expect(await rows(server)).toEqual(lines);
});

test("delay holds back no other answers, and no more than told", async () => {
  // what is held at all is held for longer than this test may take
  const server = await faulty(["delay@fills:600000", "delay@storage:600000*1"]);
  expect(await rows(server, "", "bars")).toHaveLength(1);
  // the first of two is held, whichever it is
  const storage = await Promise.any([facts(server), facts(server)]);
  expect(storage).toMatchObject({ rows: "10" });
  expect(await facts(server)).toEqual(storage);
});

test("closing the server ends an answer that is delayed", async () => {
  const server = await faulty(["delay@fills:600000"]);
  const asked = fetch(urlOf(server)).then(
    (response) => response.text(),
    () => "refused",
  );
  await new Promise((resolve) => setTimeout(resolve, 50));
  await server.close();
  expect(await asked).not.toContain("seq");
});

test("status faults hit tables and documents as often as told", async () => {
  const server = await faulty(["status-502@fills*2", "status-500@storage"]);
  const statuses = [];
  for (let ask = 0; ask < 3; ask += 1) statuses.push((await fetch(urlOf(server))).status);
  expect(statuses).toEqual([502, 502, 200]);
  expect((await fetch(urlOf(server, "", "bars"))).status).toBe(200);
  const storage = `${server.url}/history/storage?instance=alpha`;
  expect([(await fetch(storage)).status, (await fetch(storage)).status]).toEqual([500, 200]);
});

test.each([
  ["", "history_identity_conflict"],
  [":history_unavailable", "history_unavailable"],
  [":history_incomplete", "history_incomplete"],
])("status-409 with the argument %j is %s, on tables and documents, every time", async (argument, code) => {
  const server = await faulty([`status-409@fills${argument}`, `status-409@summary${argument}*1`]);
  for (let ask = 0; ask < 2; ask += 1) {
    const refused = await fetch(urlOf(server));
    expect([refused.status, await refused.json()]).toMatchObject([409, { ok: false, error: { code } }]);
  }
  expect(await rows(server, "", "bars")).toHaveLength(1);
  const summary = `${server.url}/history/summary?instance=alpha`;
  expect([(await fetch(summary)).status, (await fetch(summary)).status]).toEqual([409, 200]);
});

test("an absent table has neither rows nor facts, in whatever form they are asked for", async () => {
  const server = await faulty(["absent@fills"]);
  for (const accept of ["*/*", "text/csv"]) {
    const refused = await fetch(urlOf(server), { headers: { accept } });
    const { error } = (await refused.json()) as { error: { code: string } };
    expect([refused.status, error.code]).toEqual([409, "history_unavailable"]);
  }
  expect(await facts(server)).toBe(undefined);
  expect(await facts(server, "", "bars")).toMatchObject({ rows: "1" });
  expect((await fetch(urlOf(await faulty(["absent@*"]), "", "bars"))).status).toBe(409);
});

test("cap clips every answer without a word, and maxRowsPerAnswer too", async () => {
  expect(await rows(await faulty(["cap@fills:4"]), "limit=8")).toEqual(lines.slice(0, 4));
  expect(await rows(await faulty(["cap@fills:4"]), "limit=2")).toEqual(lines.slice(0, 2));
  expect(await rows(await faulty([], { maxRowsPerAnswer: 5 }))).toEqual(lines.slice(0, 5));
});

test("tie-cap puts rows on one timestamp in rows and facts, in key order, and caps answers", async () => {
  const server = await faulty(["tie-cap@fills:3,4,2"]);
  const times = async (query: string) => (await rows(server, query)).map((line) => field(line, "ts_event"));
  expect(await times("")).toEqual(["1000", "1010"]);
  expect(await times("from=1020")).toEqual(["1020", "1020"]);
  expect((await rows(server, "from=1020&symbol=ETH")).map((line) => field(line, "seq"))).toEqual(["4", "6"]);
  expect(await times("from=1021")).toEqual(["1060", "1070"]);
  expect(await times("from=1021&to=1060")).toEqual([]);
  expect(await facts(server, "from=1020&to=1021")).toMatchObject({
    rows: "4",
    min_ts_event: "1020",
    max_ts_event: "1020",
  });
  expect(await facts(server, "from=1021&to=1061")).toMatchObject({ rows: "1", min_ts_event: "1060" });
  expect(await facts(server)).toMatchObject({ rows: "10" });
});

test("late rows are in neither rows nor facts until released, and storage_version tells", async () => {
  const late = new ArmedFaults([parseFault("late@fills:4,2")]);
  const server = await faulty([], { wire: wireFaults(late) });
  const version = async () => {
    const response = await fetch(`${server.url}/history/runs?instance=alpha`);
    return ((await response.json()) as { runs: { storage_version: string }[] }).runs[1]?.storage_version;
  };
  const before = await version();
  expect(await rows(server)).toEqual([...lines.slice(0, 3), ...lines.slice(5)]);
  expect(await rows(server, "from=1030&limit=1")).toEqual(lines.slice(5, 6));
  expect(await facts(server, "from=1030&to=1060")).toMatchObject({ rows: "1", min_ts_event: "1050" });
  late.releaseLate();
  expect(await rows(server)).toEqual(lines);
  expect(await facts(server)).toMatchObject({ rows: "10" });
  expect(await version()).not.toBe(before);
});

test("the row checksum is that of the rows shown: without late ones, and with tied ones as they are", async () => {
  for (const fault of ["late@fills:4,2", "tie-cap@fills:3,4,100"]) {
    const server = await faulty([fault]);
    const { hash } = await rowHash(await rows(server));
    expect(await facts(server, "with_checksum=true")).toMatchObject({ row_checksum: `${hash}` });
    expect(await facts(server)).toMatchObject({ row_checksum: "" });
  }
});

test("late rows appear with the request that was named", async () => {
  const server = await faulty(["late@fills:10,1,3"]);
  expect((await facts(server))?.rows).toBe("9");
  expect(await rows(server)).toHaveLength(9);
  expect((await facts(server))?.rows).toBe("10");
  expect(await rows(server)).toEqual(lines);
});

test.each([
  ["repeat@fills:5", (found: string[]) => found.slice(4, 6), [lines[4], lines[4]]],
  [
    "malformed@fills:5",
    (found: string[]) => found[4],
    Buffer.from(lines[4] ?? "")
      .subarray(0, Math.floor(Buffer.byteLength(lines[4] ?? "") / 2))
      .toString(),
  ],
  ["wrong-type@fills:5", (found: string[]) => field(found[4], "seq"), "abc"],
  ["wrong-type@fills:5,ts_init", (found: string[]) => field(found[4], "ts_init"), "abc"],
  ["decimals@fills:5", (found: string[]) => field(found[4], "price"), "1.123456789012"],
  ["decimals@fills:5,fee", (found: string[]) => field(found[4], "fee"), "1.123456789012"],
  ["number@fills:5", (found: string[]) => found[4]?.includes('"price":27000.5,'), true],
  ["missing-key@fills:5", (found: string[]) => "liquidity" in JSON.parse(found[4] ?? ""), false],
  [
    "missing-key@fills:5,run_id",
    (found: string[]) => Object.keys(JSON.parse(found[4] ?? ""))[0],
    "instance_id",
  ],
  ["unknown-field@fills:5", (found: string[]) => field(found[4], "unexpected"), "1"],
  ["out-of-order@fills:5", (found: string[]) => found.slice(3, 7), [lines[3], lines[5], lines[4], lines[6]]],
  ["foreign-run@fills:5", (found: string[]) => field(found[4], "run_id"), "r1-foreign"],
])("%s changes its row and no other", async (fault, seen, expected) => {
  const server = await faulty([fault]);
  const found = await rows(server);
  expect(seen(found)).toEqual(expected);
  const others = (all: string[]) =>
    all.filter((line) => !found.slice(4, 6).includes(line) && !lines.slice(4, 6).includes(line));
  expect(others(found)).toEqual(others(lines));
  expect(found).toHaveLength(fault.startsWith("repeat") ? 11 : 10);
});

test("a fault stays on its row when other windows are asked for", async () => {
  const server = await faulty(["wrong-type@fills:5"]);
  const bad = async (query: string) =>
    (await rows(server, query)).map((line) => field(line, "seq")).indexOf("abc");
  expect([
    await bad(""),
    await bad("from=1020"),
    await bad("from=1050"),
    await bad("from=1040&limit=1"),
  ]).toEqual([4, 2, -1, 0]);
});

test("TIMES bounds how many answers a row fault hits", async () => {
  const server = await faulty(["repeat@fills:5*1"]);
  expect(await rows(server, "limit=3")).toHaveLength(3);
  expect([(await rows(server)).length, (await rows(server)).length]).toEqual([11, 10]);
});

test("out-of-bounds moves its row just outside the window asked for", async () => {
  const server = await faulty(["out-of-bounds@fills:5"]);
  const time = async (query: string) => field((await rows(server, query)).at(-1), "ts_event");
  expect(await time("from=1000&to=1045")).toBe("1045");
  expect(await time("from=1040&limit=1")).toBe("1039");
  expect(await time("limit=5")).toBe("1040");
});

test("facts disagree by the difference given and never fall below zero", async () => {
  expect(await facts(await faulty(["facts-disagree@fills:3"]))).toMatchObject({ rows: "13" });
  expect(await facts(await faulty(["facts-disagree@fills:-30"]))).toMatchObject({ rows: "0" });
  expect(await facts(await faulty(["facts-disagree@fills:3"]), "", "bars")).toMatchObject({ rows: "1" });
});

test("facts that disagree add up over windows, unlike those that ignore bounds", async () => {
  const server = await faulty(["facts-disagree@fills:3"]);
  const rowsIn = async (query: string) => Number((await facts(server, query))?.rows);
  expect([await rowsIn("to=1040"), await rowsIn("from=1040"), await rowsIn("from=5000")]).toEqual([7, 6, 0]);
});

test("facts that ignore bounds are those of the whole run", async () => {
  const server = await faulty(["facts-ignore-bounds@fills"]);
  expect(await facts(server, "from=1040&to=1050")).toMatchObject({ rows: "10", min_ts_event: "1000" });
});

test.each([
  "cut",
  "cut@fills",
  "cut@fils:3",
  "cutt@fills:3",
  "cut@fills:x",
  "cut@fills:-1",
  "cut@fills:3*0",
  "cut@fills:3,4",
  "cut@runs:3",
  "repeat@fills:0",
  "decimals@fills:3,side",
  "decimals@metrics:3,value",
  "missing-key@fills:3,nope",
  "late@fills:3*2",
  "status-500@fills:3",
  "status-409@fills:history_unavailabel",
  "connect-error@fills:history_unavailable",
  "absent@summary",
  "absent@fills*2",
])("%s is refused as a fault, with what would be right", (text) => {
  expect(() => parseFault(text)).toThrow(
    expect.objectContaining({ code: "invalid_argument", hint: expect.any(String) }),
  );
});

test("every kind has a form and one line of meaning for the help", () => {
  expect(faultKinds.map(({ form }) => form)).toContain("tie-cap@TABLE:ROW[,COUNT][,CAP]");
  for (const { kind, form, meaning } of faultKinds) {
    expect(form.startsWith(`${kind}@TABLE`)).toBe(true);
    expect(meaning).toMatch(/^.{10,130}$/);
  }
  expect(faultGrammar).toContain("*TIMES");
});

test.each(["gzip", "zstd"] as const)(
  "%s rows decode to the same lines, and a cut shows in the frame",
  async (encoding) => {
    const decode = encoding === "gzip" ? zlib.gunzipSync : zlib.zstdDecompressSync;
    const headers = { "accept-encoding": `br, ${encoding};q=0.5` };
    const server = await faulty(["cut-bytes-clean@fills:150"], { compress: true });
    const cutBytes = await rawGet(urlOf(server), headers);
    expect([cutBytes.isWhole, cutBytes.body.length]).toEqual([true, 150]);
    expect(() => decode(cutBytes.body)).toThrow();
    const whole = await rawGet(urlOf(server), headers);
    expect(whole.head).toContain(`content-encoding: ${encoding}`);
    expect([whole.isWhole, decode(whole.body).toString()]).toEqual([true, `${lines.join("\n")}\n`]);
    const clean = await rawGet(urlOf(await faulty(["cut-clean@fills:4"], { compress: true })), headers);
    expect([clean.isWhole, decode(clean.body).toString()]).toEqual([
      true,
      `${lines.slice(0, 4).join("\n")}\n`,
    ]);
    const cut = await rawGet(urlOf(await faulty(["cut@fills:5"], { compress: true })), headers);
    expect([cut.isWhole, cut.body.length > 100]).toEqual([false, true]);
    expect(() => decode(cut.body)).toThrow();
    const refused = await rawGet(urlOf(server), { "accept-encoding": `${encoding};q=0` });
    expect(refused.body.toString()).toBe(`${lines.join("\n")}\n`);
  },
);

test("the request log has rows, bytes and endings as they went out", async () => {
  const log: RequestLogEntry[] = [];
  const server = await faulty(["cut@fills:4"], { onRequest: (entry) => log.push(entry) });
  await rawGet(urlOf(server, "from=1000"));
  const whole = await rawGet(urlOf(server, "from=1010&to=1970-01-01T00:00:00.00000103Z&limit=9"));
  await fetch(`${server.url}/history/fills?instance=alpha&run_id=current`);
  expect(log[0]).toMatchObject({
    table: "fills",
    run: "r1",
    from: "1000",
    status: 200,
    ending: "cut",
    rows: 4,
  });
  expect(log[1]).toMatchObject({
    from: "1010",
    to: "1030",
    limit: 9,
    ending: "whole",
    rows: 2,
    bytes: whole.body.length,
  });
  expect(log[2]).toMatchObject({
    path: "/api/v1/history/fills",
    status: 404,
    rows: 0,
    query: { run_id: "current" },
  });
  expect(log).toHaveLength(3);
});
