// @module-tag slow
import { create, fromBinary, fromJson, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import {
  PreviewTableRequestSchema,
  PreviewTableResponseSchema,
} from "../../src/gen/example/history/v1/history_service_pb.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import type { RowRequest } from "../../src/model/source.ts";
import { CursorPool } from "../../src/serve/history/cursor-pool.ts";
import { type Listing, PageTokens } from "../../src/serve/history/page-token.ts";
import { rowPage } from "../../src/serve/history/row-pages.ts";
import { type Served, type ServeOptions, serve } from "../../src/serve/server.ts";
import { maxPageBytes, type Page } from "../../src/serve/wire-hook.ts";
import { failure, historyClient, lineOf, pagesOf } from "../fixtures/served/rpc-clients.ts";
import { ArraySource, fills, rowOf } from "../fixtures/served/serve-source.ts";
import { rowsAt, ArraySource as World } from "../fixtures/source/array-source.ts";

const run = { instanceId: "alpha", runId: "r1" };
const listing: Listing = { run, table: "fills", filters: {} };
const signal = new AbortController().signal;

const open: Served[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((served) => served.close()));
});

async function served(source: ArraySource, options: Partial<ServeOptions> = {}): Promise<Served> {
  const server = await serve({ source, host: "127.0.0.1", port: 0, ...options });
  open.push(server);
  return server;
}

function poolOf(most: number, idleMs = 60_000, mostBytes = 1_000_000): CursorPool {
  return new CursorPool({
    most,
    mostBytes,
    idleMs,
    onError: (error) => {
      throw error;
    },
  });
}

function linesOf(page: Page): string[] {
  return fromBinary(PreviewTableResponseSchema, page.wire).rows.map(({ row }) => lineOf("fills", row.value));
}

const tokens = new PageTokens();

function ask(
  source: World | ArraySource,
  pool: CursorPool,
  token: string,
  limit: number | undefined,
  of = listing,
) {
  return rowPage(source, pool, tokens, { listing: of, form: "preview", limit, token, isJson: false, signal });
}

/** Steps between timestamps: mostly none, so that pages end among equal ones. */
const steps = fc.array(fc.constantFrom(0, 0, 0, 1, 2, 1000), { minLength: 1, maxLength: 40 });

function timesOf(gaps: readonly number[], start = -3): bigint[] {
  let time = BigInt(start);
  return gaps.map((gap) => {
    time += BigInt(gap);
    return time;
  });
}

test("pages of any sizes hold every row once and in order, whether cursors are kept or lost", async () => {
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.array(fc.tuple(fc.integer({ min: 1, max: 7 }), fc.boolean()), { minLength: 1, maxLength: 10 }),
      fc.integer({ min: 1, max: 2000 }),
      async (gaps, pages, chunkBytes) => {
        const rows = rowsAt(run, "fills", timesOf(gaps));
        const source = new World(run, new Map([["fills", rows]]), { chunkBytes });
        await using keeping = poolOf(4);
        const seen: string[] = [];
        let token = "";
        for (let index = 0; index === 0 || token !== ""; index += 1) {
          const [limit, isLost] = pages[index % pages.length]!;
          await using losing = poolOf(4);
          const page = await ask(source, isLost ? losing : keeping, token, limit);
          expect(page.rows).toBeLessThanOrEqual(limit);
          expect([page.number, page.rows > 0]).toEqual([index + 1, true]);
          seen.push(...linesOf(page));
          token = page.nextToken;
        }
        expect(seen).toEqual(rows.map(({ line }) => line));
      },
    ),
    { numRuns: 150 },
  );
});

test("while a run grows at its end, pages give a whole beginning of it", async () => {
  await fc.assert(
    fc.asyncProperty(
      steps,
      steps,
      fc.integer({ min: 1, max: 5 }),
      fc.boolean(),
      async (now, later, limit, isKept) => {
        const all = rowsAt(run, "fills", timesOf([...now, ...later]));
        const source = new World(run, new Map([["fills", all.slice(0, now.length)]]));
        await using pool = poolOf(4);
        // a closed pool keeps none
        if (!isKept) await pool[Symbol.asyncDispose]();
        const first = await ask(source, pool, "", limit);
        const seen = linesOf(first);
        source.tables.set("fills", all);
        for (let token = first.nextToken; token !== ""; ) {
          const page = await ask(source, pool, token, limit);
          seen.push(...linesOf(page));
          token = page.nextToken;
        }
        expect(seen).toEqual(all.slice(0, seen.length).map(({ line }) => line));
        if (first.nextToken !== "") expect(seen.length).toBeGreaterThanOrEqual(now.length);
      },
    ),
    { numRuns: 100 },
  );
});

test("late rows never make a page lose or double a row: it goes on right, or the token has expired", async () => {
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.nat(),
      fc.integer({ min: 1, max: 5 }),
      fc.boolean(),
      async (gaps, place, limit, isKept) => {
        const all = rowsAt(run, "fills", timesOf(gaps));
        const late = all[place % all.length]!;
        const before = all.filter((row) => row !== late);
        const source = new World(run, new Map([["fills", before]]));
        await using pool = poolOf(4);
        // a closed pool keeps none
        if (!isKept) await pool[Symbol.asyncDispose]();
        const first = await ask(source, pool, "", limit);
        const seen = linesOf(first);
        source.tables.set("fills", all);
        try {
          for (let token = first.nextToken; token !== ""; ) {
            const page = await ask(source, pool, token, limit);
            seen.push(...linesOf(page));
            token = page.nextToken;
          }
        } catch (error) {
          expect([RunvaultError.from(error).code, isKept]).toEqual(["invalid_argument", false]);
          expect((error as Error).message).toMatch(/page_token has expired/);
          return;
        }
        expect(new Set(seen).size).toBe(seen.length);
        const wanted = first.nextToken === "" ? seen : before.map(({ line }) => line);
        expect(seen.filter((line) => line !== late.line)).toEqual(
          wanted.filter((line) => line !== late.line),
        );
      },
    ),
    { numRuns: 200 },
  );
});

test("going through a table asks the source once, and once more where the cursor is gone", async () => {
  const source = new World(run, new Map([["fills", rowsAt(run, "fills", timesOf(Array(50).fill(1)))]]));
  await using pool = poolOf(4);
  let token = "";
  do token = (await ask(source, pool, token, 7)).nextToken;
  while (token !== "");
  expect(source.asked).toHaveLength(1);
  const { nextToken } = await ask(source, pool, "", 7);
  await using other = poolOf(4);
  await ask(source, other, nextToken, 7);
  expect(source.asked).toHaveLength(3);
  expect(source.asked[2]?.from).toBe(timesOf(Array(7).fill(1)).at(-1));
});

test("a token can be used again, and by two at a time", async () => {
  const source = new World(run, new Map([["fills", rowsAt(run, "fills", timesOf(Array(20).fill(1)))]]));
  await using pool = poolOf(4);
  const { nextToken } = await ask(source, pool, "", 7);
  const pages = await Promise.all([0, 1, 2].map(() => ask(source, pool, nextToken, 7)));
  for (const page of pages) expect(linesOf(page)).toEqual(linesOf(pages[0]!));
  expect(new Set(pages.map((page) => page.nextToken)).size).toBe(1);
  expect(pool.size).toBe(1);
  expect(linesOf(await ask(source, pool, pages[0]!.nextToken, 7))).toHaveLength(6);
});

test("answers of the source are closed: when full, when idle, when they fail, when the server closes", async () => {
  const source = new ArraySource({ fills: fills(100) });
  await using pool = poolOf(2);
  for (let limit = 1; limit <= 5; limit += 1) await ask(source, pool, "", limit);
  // listings of one token share an answer, so these are five; three had to make room
  expect(pool.size).toBe(2);
  await expect.poll(() => source.ended).toBe(3);
  await using impatient = poolOf(2, 1);
  await ask(source, impatient, "", 1);
  await expect.poll(() => source.ended).toBe(4);
  expect(impatient.size).toBe(0);

  const server = await serve({ source, host: "127.0.0.1", port: 0 });
  await historyClient(server).previewTable({ table: "fills", selection: run, pageSize: 7 });
  expect(source.ended).toBe(4);
  await server.close();
  expect(source.ended).toBe(5);

  source.failAfterChunks = 10;
  await using fresh = poolOf(2);
  const { nextToken } = await ask(source, fresh, "", 7);
  await expect(ask(source, fresh, nextToken, undefined)).rejects.toMatchObject({
    code: "history_query_failed",
  });
  expect([source.ended, fresh.size]).toEqual([6, 0]);
});

test("kept answers hold no more text together than they may, but for the one kept last", async () => {
  const source = new ArraySource({ fills: fills(100) });
  source.chunkBytes = 30_000;
  await using pool = poolOf(32, 60_000, 100_000);
  for (let limit = 1; limit <= 5; limit += 1) await ask(source, pool, "", limit);
  expect(pool.size).toBe(3);
  await using narrow = poolOf(32, 60_000, 10);
  const { nextToken } = await ask(source, narrow, "", 6);
  await ask(source, narrow, "", 7);
  expect(narrow.size).toBe(1);
  expect((await ask(source, narrow, nextToken, 6)).rows).toBe(6);
});

test("a client that leaves ends its answer of the source", async () => {
  const source = new ArraySource({ fills: fills(1) });
  let given: RowRequest | undefined;
  source.rows = async function* (request) {
    given = request;
    await new Promise<void>((left) => request.signal!.addEventListener("abort", () => left()));
    throw new RunvaultError("interrupted", "left");
    // biome-ignore lint/correctness/noUnreachable: what makes it a generator
    yield new Uint8Array();
  };
  const leaving = new AbortController();
  const server = await served(source);
  const call = historyClient(server).listMarketBars({ selection: run }, { signal: leaving.signal });
  await expect.poll(() => given).toBeDefined();
  leaving.abort();
  await expect(call).rejects.toMatchObject({ code: Code.Canceled });
  await expect.poll(() => given!.signal!.aborted).toBe(true);
});

test("a token is refused with any other parameter, altered, cut, or made up", async () => {
  const source = new ArraySource({ fills: fills(20), bars: [], orders: fills(20) }, ["r0", "r1"]);
  const client = historyClient(await served(source));
  const selection = { ...run, from: 1000n, symbol: "BTC" };
  const request = { table: "fills", selection, pageSize: 3 };
  const { nextPageToken: pageToken } = await client.previewTable(request);
  const refused = { code: Code.InvalidArgument, history: "invalid_argument" };
  for (const other of [
    { from: 1001n },
    { to: 5000n },
    { symbol: "ETH" },
    { symbol: "" },
    { venue: "Zürich" },
    { runId: "r0" },
    { instanceId: "beta" },
  ]) {
    expect(
      await failure(client.previewTable({ ...request, selection: { ...selection, ...other }, pageToken })),
    ).toEqual(refused);
  }
  expect(await failure(client.previewTable({ ...request, table: "orders", pageToken }))).toEqual(refused);
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.string({ minLength: 1, maxLength: 100 }),
        fc
          .uint8Array({ minLength: 1, maxLength: 100 })
          .map((bytes) => Buffer.from(bytes).toString("base64url")),
        fc.nat(pageToken.length - 1).map((at) => `${pageToken.slice(0, at)}${pageToken.slice(at + 1)}`),
        fc
          .tuple(fc.nat(pageToken.length - 1), fc.constantFrom("A", "z", "_"))
          .map(([at, letter]) => `${pageToken.slice(0, at)}${letter}${pageToken.slice(at + 1)}`),
      ),
      async (token) => {
        fc.pre(token !== pageToken);
        expect(await failure(client.previewTable({ ...request, pageToken: token }))).toEqual(refused);
      },
    ),
    { numRuns: 100 },
  );
  // a page size is no part of what is listed
  expect((await client.previewTable({ ...request, pageSize: 1, pageToken })).rows).toHaveLength(1);
});

test("pages stay within 4 MiB in every codec, as full as rows allow, and a larger row stands alone", async () => {
  const rows = fills(2500).map((row, index) => ({
    ...row,
    trade_id: `${index}`.padEnd(index === 100 ? 5_000_000 : 2000, "ü"),
  }));
  const source = new ArraySource({ fills: rows });
  source.chunkBytes = 1_000_000;
  const server = await served(source);
  const url = `${new URL(server.url).origin}/example.history.v1.HistoryService/PreviewTable`;
  const codecs = {
    "application/proto": {
      encode: (pageToken: string) =>
        toBinary(
          PreviewTableRequestSchema,
          create(PreviewTableRequestSchema, { table: "fills", selection: run, pageToken }),
        ),
      decode: (bytes: Uint8Array) => fromBinary(PreviewTableResponseSchema, bytes),
    },
    "application/json": {
      encode: (pageToken: string) =>
        Buffer.from(JSON.stringify({ table: "fills", selection: run, pageToken })),
      decode: (bytes: Uint8Array) =>
        fromJson(PreviewTableResponseSchema, JSON.parse(Buffer.from(bytes).toString())),
    },
  };
  for (const [type, { encode, decode }] of Object.entries(codecs)) {
    const sizes: number[] = [];
    const counts: number[] = [];
    for (let pageToken = ""; sizes.length < 4; ) {
      const body = encode(pageToken);
      const response = await fetch(url, { method: "POST", headers: { "content-type": type }, body });
      expect(response.status).toBe(200);
      const bytes = new Uint8Array(await response.arrayBuffer());
      const page = decode(bytes);
      sizes.push(bytes.byteLength);
      counts.push(page.rows.length);
      pageToken = page.nextPageToken;
      expect(pageToken).not.toBe("");
    }
    expect(counts.slice(0, 2)).toEqual([100, 1]);
    expect(sizes[1]).toBeGreaterThan(maxPageBytes);
    for (const size of [sizes[0]!, ...sizes.slice(2)]) expect(size).toBeLessThanOrEqual(maxPageBytes);
    if (type === "application/proto") {
      for (const size of sizes.slice(2)) expect(size).toBeGreaterThan(4_000_000);
    }
  }
});

test("the cap on rows an answer is one on page sizes, and filters and bounds hold on every page", async () => {
  const source = new ArraySource({ fills: fills(40) });
  const client = historyClient(await served(source, { maxRowsPerAnswer: 5 }));
  const pages = await pagesOf(client, "fills", { pageSize: 100, from: 1050n, to: 1300n, symbol: "ETH" });
  expect(pages.map((page) => page.length)).toEqual([5, 5, 3]);
  expect(pages.flat()).toEqual(
    source.lines("fills").filter((line) => {
      const { ts_event, symbol } = JSON.parse(line);
      return symbol === "ETH" && Number(ts_event) >= 1050 && Number(ts_event) < 1300;
    }),
  );
});

test("recent fills are the last ones, whatever lies between them", async () => {
  const source = new ArraySource({});
  const client = historyClient(await served(source));
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 1, max: 50 }), fc.boolean(), async (gaps, limit, lists) => {
      source.rowsOf = {
        fills: timesOf(gaps, 5).map((ts, index) => rowOf("fills", { seq: `${index}`, ts_event: `${ts}` })),
      };
      source.lists = lists;
      const { fills: recent } = await client.listRecentFills({ selection: run, limit });
      expect(recent.map((row) => lineOf("fills", row))).toEqual(source.lines("fills").slice(-limit));
    }),
    { numRuns: 25 },
  );
});

test("a row that does not fit its message fails its page by name, and pages before it are whole", async () => {
  const source = new ArraySource({ fills: fills(10) });
  const lines = source
    .lines("fills")
    .map((line, at) => (at === 6 ? line.replace(/"seq":"\d+"/, '"seq":"x"') : line));
  source.rows = async function* () {
    yield Buffer.from(lines.map((line) => `${line}\n`).join(""));
  };
  const client = historyClient(await served(source));
  const request = { table: "fills", selection: run, pageSize: 6 };
  const { rows, nextPageToken: pageToken } = await client.previewTable(request);
  expect(rows).toHaveLength(6);
  await expect(client.previewTable({ ...request, pageToken })).rejects.toMatchObject({
    code: Code.Internal,
    message: expect.stringMatching(/row 7 of the rows of fills of alpha\/r1 does not fit .*"seq":"x"/),
  });
});

test("lines in other forms, blank ones, and a last one without its end are rows as they should be", async () => {
  const source = new ArraySource({ fills: fills(5) });
  const lines = source.lines("fills");
  const other = (line: string) => JSON.stringify(JSON.parse(line), null, 1).replaceAll("\n", " ");
  const text = `${lines[0]}\r\n\n${other(lines[1]!)}\n\r\n${lines[2]}\n${lines[3]}\n\n${lines[4]}`;
  for (const chunkBytes of [1, 7, 500, 100_000]) {
    source.rows = async function* () {
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
    };
    const client = historyClient(await served(source));
    expect((await pagesOf(client, "fills", { pageSize: 2 })).flat()).toEqual(lines);
  }
  expect(lines[0]).toContain(tableNamed("fills").columns[0]!.name);
});
