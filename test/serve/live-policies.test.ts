// @module-tag slow
import { expect, test } from "vitest";
import type { LiveFeed, LiveValue } from "../../src/model/control.ts";
import type { RequestLogEntry } from "../../src/serve/monitoring/request-log.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { LiveClient, LiveWorld, minute, second } from "../fixtures/served/live-world.ts";
import { controlOf } from "../fixtures/served/serve-control.ts";
import { ArraySource } from "../fixtures/served/serve-source.ts";

const fills = "fills.SIMEX.BTC-PERP";
const bars = "bars.SIMEX.BTC-PERP.1m";
const book = "book.SIMEX.BTC-PERP";
const factors = "factors.core.BTC-PERP";

type Row = Record<string, string>;

/** Rows of the history of a key as REST has them now. */
async function history(world: LiveWorld, table: string, key: string): Promise<Row[]> {
  const { text } = await world.ask(`/history/${table}?instance=alpha-1&resource_key=${key}`);
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/** The rows of a frame of values: what is inside the oneof. */
// biome-ignore lint/suspicious/noExplicitAny: a frame as it came
const rowsOf = (frame: any): Row[] =>
  frame.values.rows.map((row: Record<string, Row>) => Object.values(row)[0]);

/** Subscribes and gives the contract it was told. */
async function subscribed(client: LiveClient, key: string) {
  client.subscribe(key);
  const { subscribed: answer } = await client.next();
  expect(answer.resourceKey).toBe(key);
  return answer.feeds;
}

test("the catalog has a resource for each value of the contract's policies", async () => {
  await using world = await LiveWorld.open();
  const { resources } = (await world.ask("/runtime/resources?instance=alpha-1")).json();
  const values = (field: string) => [
    ...new Set(resources.map(({ contract }: { contract: Row }) => contract[field])),
  ];
  expect(values("deliveryModel").sort()).toEqual(["EVENT", "SAMPLED", "SNAPSHOT"]);
  expect(values("replayPolicy").sort()).toEqual(["ALL", "LAST", "NONE"]);
  expect(values("mergeModel").sort()).toEqual(["APPEND", "REPLACE", "UPSERT"]);
  expect(values("dropPolicy").sort()).toEqual(["CONFLATE", "NEVER", "OLDEST"]);
});

test("EVENT with replay ALL: everything of the run, then every row as it becomes known, none twice", async () => {
  await using world = await LiveWorld.open();
  using client = await world.connect();
  const before = await history(world, "fills", fills);
  expect(before.length).toBeGreaterThan(5);
  const [feed] = await subscribed(client, fills);
  expect(feed).toMatchObject({
    contract: { deliveryModel: "EVENT", replayPolicy: "ALL", mergeModel: "APPEND", dropPolicy: "NEVER" },
    identity: [],
  });
  const replayed: Row[] = [];
  while (replayed.length < before.length) {
    const frame = await client.next();
    expect(frame.values).toMatchObject({ resourceKey: fills, model: "fills", replayed: true, dropped: "0" });
    replayed.push(...rowsOf(frame));
  }
  expect(replayed.map(({ tradeId }) => tradeId)).toEqual(before.map(({ trade_id }) => trade_id));
  expect(Object.keys(replayed[0]!)).toEqual(
    Object.keys(before[0]!).map((name) => name.replaceAll(/_(.)/g, (_m, letter) => letter.toUpperCase())),
  );

  world.pass(40n * minute);
  const known = new Set(before.map(({ trade_id }) => trade_id));
  const fresh = (await history(world, "fills", fills))
    .filter(({ trade_id }) => !known.has(trade_id))
    .sort((a, b) => Number(BigInt(a.ts_init!) - BigInt(b.ts_init!)));
  expect(fresh.length).toBeGreaterThan(3);
  const live: Row[] = [];
  let number = 0;
  while (live.length < fresh.length) {
    const { values } = await client.next();
    expect(values).toMatchObject({ replayed: false, dropped: "0" });
    expect(Number(values.number)).toBeGreaterThan(number);
    number = Number(values.number);
    expect(values.rows).toHaveLength(1);
    live.push(...rowsOf({ values }));
  }
  expect(live.map(({ tradeId }) => tradeId)).toEqual(fresh.map(({ trade_id }) => trade_id));
});

test("EVENT with replay LAST: the last row first, then each one", async () => {
  await using world = await LiveWorld.open();
  using client = await world.connect();
  const before = await history(world, "bars", bars);
  await subscribed(client, bars);
  const first = await client.next();
  expect([first.values.replayed, rowsOf(first).map(({ tsEvent }) => tsEvent)]).toEqual([
    true,
    [before.at(-1)!.ts_event],
  ]);
  world.pass(10n * minute);
  const after = await history(world, "bars", bars);
  const fresh = after.filter(({ seq }) => !before.some((row) => row.seq === seq));
  const seqs = new Set<string>();
  while (seqs.size < fresh.length) for (const { seq } of rowsOf(await client.next())) seqs.add(seq!);
  expect([...seqs].sort()).toEqual(fresh.map(({ seq }) => seq).sort());
});

test("EVENT with replay NONE: nothing of what was before", async () => {
  await using world = await LiveWorld.open();
  using client = await world.connect();
  const before = await history(world, "events", "events.account");
  expect(before.length).toBeGreaterThan(1);
  await subscribed(client, "events.account");
  world.pass(100n * minute);
  const { values } = await client.next();
  expect([values.replayed, values.number]).toEqual([false, "1"]);
  expect(before.map(({ seq }) => seq)).not.toContain(rowsOf({ values })[0]!.seq);
});

test("SNAPSHOT: the whole value at first and on every change, all of one instant", async () => {
  await using world = await LiveWorld.open();
  using client = await world.connect();
  const [feed] = await subscribed(client, book);
  expect(feed.contract).toMatchObject({
    deliveryModel: "SNAPSHOT",
    mergeModel: "REPLACE",
    dropPolicy: "CONFLATE",
  });
  const whole = async () => {
    const frame = await client.next();
    const rows = rowsOf(frame);
    expect(new Set(rows.map(({ snapshotId }) => snapshotId)).size).toBe(1);
    const { tsEvent } = rows[0]!;
    const known = (await history(world, "order-book", book)).filter(({ ts_event }) => ts_event === tsEvent);
    expect(rows.map(({ seq }) => seq)).toEqual(known.map(({ seq }) => seq));
    expect(rows.length).toBeGreaterThan(6);
    return [frame.values.replayed, BigInt(tsEvent!)] as const;
  };
  const [replayed, first] = await whole();
  expect(replayed).toBe(true);
  world.pass(5n * minute);
  let [live, second] = await whole();
  expect(live).toBe(false);
  // a row of the first snapshot that came late is a change of its own
  while (second === first) [live, second] = await whole();
  expect(second).toBe(first + 5n * minute);
});

test("SAMPLED: the whole value at intervals of the clock, changed or not", async () => {
  await using world = await LiveWorld.open();
  using client = await world.connect();
  const [feed] = await subscribed(client, factors);
  expect(feed.contract).toMatchObject({ deliveryModel: "SAMPLED", replayPolicy: "NONE" });
  world.pass(30n * second);
  const samples: Row[][] = [];
  for (let round = 0; round < 3; round += 1) {
    world.pass(10n * second);
    const frame = await client.next();
    expect(frame.values.replayed).toBe(false);
    samples.push(rowsOf(frame));
  }
  for (const rows of samples) {
    expect(new Set(rows.map(({ tsEvent }) => tsEvent)).size).toBe(1);
    expect(rows.length).toBeGreaterThan(0);
  }
  const minutes = new Set(samples.map((rows) => rows[0]!.tsEvent));
  expect(minutes.size).toBeLessThan(samples.length);
});

test("UPSERT says which fields a row is known by; a key of two entries brings both", async () => {
  await using world = await LiveWorld.open();
  using client = await world.connect();
  const [orders] = await subscribed(client, "orders.SIMEX.BTC-PERP");
  expect([orders.contract.mergeModel, orders.identity]).toEqual(["UPSERT", ["client_order_id"]]);
  const held = new Map<string, string>();
  const wanted = new Map(
    (await history(world, "orders", "orders.SIMEX.BTC-PERP")).map(({ client_order_id, status }) => [
      client_order_id!,
      status!,
    ]),
  );
  while (held.size < wanted.size) {
    for (const { clientOrderId, status } of rowsOf(await client.next())) held.set(clientOrderId!, status!);
  }
  expect(held).toEqual(wanted);

  using other = await world.connect();
  const feeds = await subscribed(other, "portfolio.core");
  expect(feeds.map(({ contract }: { contract: Row }) => contract.model)).toEqual(["equity", "metrics"]);
  expect((await other.next()).values).toMatchObject({ model: "equity", number: "1", replayed: true });
  world.now = world.span.complete;
  const models = (await other.until((frame) => frame.ended !== undefined)).map(
    (frame) => frame.values?.model,
  );
  expect(new Set(models)).toEqual(new Set(["equity", "metrics", undefined]));
});

test("a subscription ends with its run, after its last value, and the next run is another", async () => {
  await using world = await LiveWorld.open();
  using client = await world.connect();
  await subscribed(client, bars);
  await client.next();
  await world.post("/instances/alpha-1/restart");
  world.pass(5n * second);
  const frames = await client.until((frame) => frame.ended !== undefined);
  expect(frames.at(-1)).toEqual({ ended: { resourceKey: bars } });
  await subscribed(client, bars);
  world.pass(3n * minute);
  const runId = (await world.ask("/instances/alpha-1")).json().currentRunId;
  expect(rowsOf(await client.next())[0]!.runId).toBe(runId);
  expect(runId).not.toBe(world.run.runId);
});

test("what is unsubscribed is over, and can be subscribed to again", async () => {
  await using world = await LiveWorld.open();
  using client = await world.connect();
  await subscribed(client, bars);
  await client.next();
  client.send({ unsubscribe: { resourceKey: bars } });
  expect(await client.next()).toEqual({ unsubscribed: { resourceKey: bars } });
  world.pass(10n * minute);
  await subscribed(client, book);
  expect((await client.next()).values.resourceKey).toBe(book);
  await subscribed(client, bars);
});

test.each([
  [
    "a key that is not in the catalog",
    { subscribe: { resourceKey: "no.such" } },
    "RESOURCE_NOT_FOUND",
    "no.such",
  ],
  ["a key of a prototype", { subscribe: { resourceKey: "__proto__" } }, "RESOURCE_NOT_FOUND", "__proto__"],
  ["an empty key", { subscribe: { resourceKey: "" } }, "INVALID_ARGUMENT", ""],
  ["no key", { subscribe: {} }, "INVALID_ARGUMENT", ""],
  ["a key that is no text", { subscribe: { resourceKey: 7 } }, "INVALID_ARGUMENT", ""],
  ["what nobody subscribed to", { unsubscribe: { resourceKey: bars } }, "RESOURCE_NOT_FOUND", bars],
  ["an unknown message", { publish: { resourceKey: bars } }, "INVALID_ARGUMENT", ""],
  ["an unknown field", { subscribe: { resourceKey: bars, from: 1 } }, "INVALID_ARGUMENT", ""],
  [
    "two messages in one",
    { subscribe: { resourceKey: bars }, unsubscribe: { resourceKey: bars } },
    "INVALID_ARGUMENT",
    "",
  ],
  ["nothing", {}, "INVALID_ARGUMENT", ""],
  ["an array", [], "INVALID_ARGUMENT", ""],
  ["text that is no JSON", "{", "INVALID_ARGUMENT", ""],
  ["bytes", new Uint8Array([1, 2]), "INVALID_ARGUMENT", ""],
])("a frame with %s is answered with an error, and the connection stays", async (_what, frame, code, key) => {
  await using world = await LiveWorld.open({ rows: 1000 });
  using client = await world.connect();
  if (frame instanceof Uint8Array) client.sendBytes(frame);
  else if (typeof frame === "string") client.sendText(frame);
  else client.send(frame);
  const { error } = await client.next();
  expect([error.resourceKey, error.error.code]).toEqual([key, `ERROR_CODE_${code}`]);
  await subscribed(client, bars);
});

test("a second subscription to a key is a conflict", async () => {
  await using world = await LiveWorld.open({ rows: 1000 });
  using client = await world.connect();
  await subscribed(client, "events.account");
  client.subscribe("events.account");
  expect((await client.next()).error.error.code).toBe("ERROR_CODE_STATE_CONFLICT");
});

test("a frame that is too large closes the connection with 1009", async () => {
  await using world = await LiveWorld.open({ rows: 1000 });
  using client = await world.connect();
  client.sendText("x".repeat(17 * 1024));
  expect((await client.closed).code).toBe(1009);
});

test("a server that ends closes its connections with 1001, and logs what they were sent", async () => {
  const log: RequestLogEntry[] = [];
  await using world = await LiveWorld.open({ rows: 1000, serve: { onRequest: (entry) => log.push(entry) } });
  using client = await world.connect();
  await subscribed(client, bars);
  await client.next();
  await world.server.close();
  expect((await client.closed).code).toBe(1001);
  expect(log).toEqual([
    {
      method: "GET",
      path: "/api/v1/instances/alpha-1/ws",
      query: {},
      status: 101,
      ending: "whole",
      rows: 1,
      bytes: expect.any(Number),
    },
  ]);
});

/** A server whose one instance has any key, with values that never come. */
async function withAnyKey(): Promise<{ server: Served; url: string; ended: () => number }> {
  let ended = 0;
  const feed = (resourceKey: string): LiveFeed => ({
    resourceKey,
    contract: { model: "fills", dropPolicy: "NEVER" },
    identity: [],
    async *values(signal): AsyncGenerator<LiveValue> {
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      ended += 1;
    },
  });
  const server = await serve({
    source: new ArraySource({}),
    control: {
      ...controlOf({ instanceId: "alpha", currentRunId: "r1" }),
      status: async () => ({ transport: { connected: true }, capabilities: { subscriptions: true } }),
      feeds: async (_instance, key) => [feed(key)],
    },
    host: "127.0.0.1",
    port: 0,
  });
  return { server, url: `${server.url.replace("http", "ws")}/instances/alpha/ws`, ended: () => ended };
}

test("a connection takes sixteen subscriptions, and a server sixty-four connections", async () => {
  const { server, url, ended } = await withAnyKey();
  try {
    const client = await LiveClient.open(url);
    for (let n = 0; n < 17; n += 1) client.subscribe(`key ${n}`);
    const frames = await client.until((frame) => frame.error !== undefined);
    expect(frames.at(-1)!.error).toMatchObject({
      resourceKey: "key 16",
      error: { code: "ERROR_CODE_LIMIT_EXCEEDED" },
    });
    for (let n = frames.length - 1; n < 16; n += 1) expect((await client.next()).subscribed).toBeDefined();
    client.send({ unsubscribe: { resourceKey: "key 3" } });
    expect((await client.next()).unsubscribed).toBeDefined();
    client.subscribe("key 16");
    expect((await client.next()).subscribed).toBeDefined();

    const others = await Promise.all(Array.from({ length: 63 }, () => LiveClient.open(url)));
    await expect(LiveClient.open(url)).rejects.toThrow(/refused/);
    const answer = await fetch(url.replace("ws", "http"));
    expect(answer.status).toBe(400);
    others[0]![Symbol.dispose]();
    await others[0]!.closed;
    client[Symbol.dispose]();
    await client.closed;
    // the server hears of a connection's end a moment after its client
    let again: LiveClient | undefined;
    while (again === undefined) again = await LiveClient.open(url).catch(() => undefined);
    again[Symbol.dispose]();
    for (const other of others) other[Symbol.dispose]();
    // what a client subscribed to ends with its connection
    while (ended() < 17) await new Promise((resolve) => setImmediate(resolve));
  } finally {
    await server.close();
  }
});
