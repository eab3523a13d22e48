import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { BufferPool } from "../../src/extract/fetch/buffer-pool.ts";
import type { SliceWork } from "../../src/extract/fetch/slice.ts";
import { showWholeEnd } from "../../src/extract/proof/capped-end.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { archiveRun } from "../../src/extract/run/archive-run.ts";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import { openRpcGateway } from "../../src/gateway/rpc/rpc-gateway.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import type { RetryInfo, RetryPolicy } from "../../src/model/retry/retry-policy.ts";
import type { HistorySource, RowRequest } from "../../src/model/source.ts";
import { serve } from "../../src/serve/server.ts";
import { smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { withFaults } from "../fixtures/served/served-faults.ts";
import { type ArrayRow, ArraySource, type Manners, rowsAt } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { fail, pageOf, scriptedRun, send, servePages } from "../fixtures/source/rpc-scripted-pages.ts";
import { takenSlice } from "../fixtures/source/taken-slice.ts";

/** The longest wait that is done here. */
const capMs = 20;
const day = 86_400_000;

const tooMany = () => new RunvaultError("rate_limited", "come back tomorrow", { retryAfterMs: day });

/** A policy with a small cap, and what it told of. A wait that is not capped is told and given up. */
function cappedPolicy(retries: number): {
  retry: RetryPolicy;
  told: RetryInfo[];
  signal: AbortSignal;
} {
  const told: RetryInfo[] = [];
  const abort = new AbortController();
  const onRetry = (info: RetryInfo) => {
    told.push(info);
    if (info.delayMs > capMs) abort.abort(new Error(`waits for ${info.delayMs} ms`));
  };
  return { retry: quickRetry({ retries, retryAfterMaxMs: capMs, onRetry }), told, signal: abort.signal };
}

/** Fetches a table of fills by slice; gives the lines, and what was told of retries. */
async function fetched(
  source: HistorySource | ((retry: RetryPolicy) => HistorySource),
  how: { retries?: number; counted?: ArraySource; until?: bigint } = {},
) {
  const { retry, told, signal } = cappedPolicy(how.retries ?? 2);
  await using opened = typeof source === "function" ? source(retry) : source;
  const { counted, until = 1000n } = how;
  const work: SliceWork = {
    source: opened,
    pool: new BufferPool(3, 5000),
    segmentBytes: 4000,
    mostBytes: 64 << 20,
    retry,
    signal,
    countRows: counted && (async (from, to) => counted.rowsWithin("fills", { from, to }).length),
    onRows: () => {},
    seen: new SeenSource(),
  };
  const expected = counted?.rowsWithin("fills", {}).length;
  const slice = { run: scriptedRun, table: tableNamed("fills"), bucket: "all", from: 0n, to: until };
  const { segments, openEnd } = await takenSlice({ ...slice, expected }, work);
  const lines = segments.flatMap(({ text }) => text.split("\n").slice(0, -1));
  if (openEnd !== null && !openEnd.isHeld) {
    // asks the parts, which prove nothing by themselves
    const shown = showWholeEnd({ ...slice, source: opened, retry, signal }, openEnd, 64 << 20, work.seen);
    await expect(shown).rejects.toMatchObject({ code: "unverified" });
  }
  return { lines, told: told.map(({ error, delayMs }) => [error.code, delayMs]) };
}

const fillsAt = (times: readonly bigint[], symbols?: string[]) =>
  rowsAt(scriptedRun, "fills", times, symbols);
const open = (rows: readonly ArrayRow[], manners: Manners = {}) =>
  new ArraySource(scriptedRun, new Map([["fills", [...rows]]]), manners);
const linesOf = (rows: readonly ArrayRow[]) => rows.map(({ line }) => line);

/** Refuses the first request for rows that is of a kind. */
function refusingOnce(isOfKind: (request: RowRequest) => boolean): NonNullable<Manners["refuses"]> {
  let left = 1;
  return (request) => (isOfKind(request) && left-- > 0 ? tooMany() : undefined);
}

/** Answers that break off after some bytes because there were too many requests, as a later page over RPC does. */
class BrokenOffSource extends ArraySource {
  left = 2;
  override async *rows(request: RowRequest): AsyncIterable<Uint8Array> {
    for await (const chunk of super.rows(request)) {
      yield chunk;
      if (this.left-- > 0) throw tooMany();
    }
  }
}

const once = [["rate_limited", capMs]];
const twice = [...once, ...once];

describe("a Retry-After of a day is capped where a slice is fetched", () => {
  test("by rows that are cut in mid-stream", async () => {
    const rows = fillsAt([1n, 2n, 3n, 4n]);
    const source = new BrokenOffSource(scriptedRun, new Map([["fills", rows]]), { chunkBytes: 500 });
    expect(await fetched(source, { counted: source })).toEqual({ lines: linesOf(rows), told: twice });
  });

  test("by rows out of order that are cut in mid-stream", async () => {
    const [one, two, ...others] = fillsAt([1n, 2n, 3n, 4n]);
    const rows = [two!, one!, ...others];
    const source = new BrokenOffSource(scriptedRun, new Map([["fills", rows]]), { chunkBytes: 1 << 20 });
    expect(await fetched(source, { counted: source })).toEqual({ lines: linesOf(rows), told: twice });
  });

  test("by a later page over RPC that is refused for longer than its own retries last", async () => {
    await using server = await servePages(({ selection }, response, call) => {
      const { from = 0n, to = 0n } = selection ?? {};
      const times = [1, 2, 3, 4].filter((time) => time >= from && time < to);
      if (call === 1) send(response, pageOf(times.slice(0, 3), "more"));
      else if (call <= 3) fail(response, Code.ResourceExhausted, "rate_limited", { "retry-after": "86400" });
      else send(response, pageOf(times));
    });
    const { lines, told } = await fetched((retry) => openRpcGateway({ baseUrl: server.url, retry }), {
      retries: 1,
    });
    expect(lines.map((line) => /"ts_event":"(\d+)"/.exec(line)?.[1])).toEqual(["1", "2", "3", "4"]);
    // once by the gateway's client, which then gives up, and once by the job
    expect(told).toEqual(twice);
  });

  test("by the question whether there is more", async () => {
    const rows = fillsAt([1n, 2n, 3n]);
    const refuses = refusingOnce(({ limit }) => limit === 1);
    expect(await fetched(open(rows, { refuses }))).toEqual({ lines: linesOf(rows), told: once });
  });

  test("by the parts of a timestamp that is looked at for what a cap hides", async () => {
    const rows = fillsAt([1n, 1n, 1n, 1n], ["A", "B"]);
    const refuses = refusingOnce(({ filters }) => filters !== undefined);
    expect(await fetched(open(rows, { refuses }), { until: 2n })).toEqual({
      lines: linesOf(rows),
      told: once,
    });
  });

  test("by the parts of a capped timestamp", async () => {
    const rows = fillsAt([1n, 1n, 1n, 1n, 1n, 1n, 2n], ["A", "B", "C"]);
    const source = open(rows, { cap: 4, refuses: refusingOnce(({ filters }) => filters !== undefined) });
    expect(await fetched(source, { counted: source })).toEqual({ lines: linesOf(rows), told: once });
  });

  test("by the pages of a capped timestamp", async () => {
    const rows = fillsAt([1n, 1n, 1n, 1n, 1n, 1n, 2n]).map((row) => ({
      ...row,
      // nothing to split by
      line: row.line.replace(/"(resource_key|account|portfolio|venue|symbol)":"[^"]*"/g, '"$1":"same"'),
    }));
    const source = open(rows, { cap: 4 });
    let left = 1;
    const paged: HistorySource = Object.assign(source, {
      async *pagedRows(request: RowRequest) {
        if (left-- > 0) throw tooMany();
        yield Buffer.from(
          source
            .rowsWithin("fills", request)
            .map(({ line }) => `${line}\n`)
            .join(""),
        );
      },
    });
    expect(await fetched(paged, { counted: source })).toEqual({ lines: linesOf(rows), told: once });
  });
});

describe("a Retry-After of a day is capped in all of a job", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "runvault-retry-after-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  /** Archives the small world's fills and orders by the policy. */
  async function archived(name: string, source: HistorySource, retry: RetryPolicy, signal: AbortSignal) {
    const { manifest } = await archiveRun({
      source,
      archive: await openArchive(join(folder, name), { create: true }),
      run: worldRun,
      tables: ["fills", "orders"],
      clock: () => 2_000_000_000_000_000_000n,
      retry,
      signal,
      tool: "test",
    });
    return manifest;
  }

  const faults = ["instances", "runs", "storage", "summary", "resources", "fills", "orders"].map(
    (where) => `rate-limit@${where}:86400*2`,
  );

  test.each([
    ["rest", false],
    ["rpc", false],
    ["auto", false],
    ["rest", true],
  ] as const)("over %s, from a literal gateway: %s", async (transport, literal) => {
    const server = await serve({
      source: new ArraySource(worldRun, smallWorld()),
      host: "127.0.0.1",
      port: 0,
      literal,
      wire: withFaults(...faults),
    });
    try {
      const { retry, told, signal } = cappedPolicy(2);
      await using gateway = openGateway({ baseUrl: server.url, retry }, transport);
      const manifest = await archived(`${transport}-${literal}`, gateway, retry, signal);
      expect(manifest.state).toBe("COMPLETE");
      expect(told.length).toBeGreaterThanOrEqual(6);
      expect(new Set(told.map(({ delayMs }) => delayMs))).toEqual(new Set([capMs]));
      // one policy: whoever asks again, it is told of it once
      expect(told.length).toBe(manifest.retries + gateway.stats.retries);
    } finally {
      await server.close();
    }
  });

  test("whose rows are cut in mid-stream", async () => {
    const { retry, told, signal } = cappedPolicy(2);
    const source = new BrokenOffSource(worldRun, smallWorld());
    const manifest = await archived("mid-stream", source, retry, signal);
    expect(manifest).toMatchObject({ state: "COMPLETE", retries: 2 });
    expect(told.map(({ delayMs }) => delayMs)).toEqual([capMs, capMs]);
  });
});
