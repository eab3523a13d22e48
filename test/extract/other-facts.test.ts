// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { archiveRun, type RunOutcome } from "../../src/extract/run/archive-run.ts";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import type { TransportChoice } from "../../src/gateway/transport-choice.ts";
import { serve } from "../../src/serve/server.ts";
import { smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { type Tamper, tamperWith } from "../fixtures/source/tampered-gateway.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-other-facts-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface Trial {
  readonly final?: boolean;
  readonly transport?: TransportChoice;
  /** The REST facts of fills, as they are told the nth time, counted from 1. */
  readonly restFills?: (fills: string, nth: number, waits: number) => string;
  readonly status?: number;
  readonly jobs?: number;
}

/** Archives fills and orders of a gateway with both transports, whose REST facts are changed on their way. */
async function archived({ final = true, transport = "auto", restFills, status, jobs = 1 }: Trial) {
  const source = new ArraySource(worldRun, smallWorld(9), { final });
  const behind = await serve({ source, host: "127.0.0.1", port: 0 });
  let asked = 0;
  let waits = 0;
  const tamper: Tamper = async ({ isFacts, isRpc }, own) => {
    if (!isFacts || isRpc) return undefined;
    asked++;
    if (status !== undefined) return { status, headers: { "content-type": "text/html" } };
    const { body, headers } = await own();
    const text = Buffer.from(body).toString();
    return {
      status: 200,
      headers,
      body: text.replace(/\{"table":"fills"[^}]*\}/, (one) => restFills?.(one, asked, waits) ?? one),
    };
  };
  await using server = await tamperWith(behind.url, tamper);
  const retry = quickRetry({ retries: 0 });
  await using gateway = openGateway({ baseUrl: `${server.url}/api/v1`, retry }, transport);
  const archive = await openArchive(await mkdtemp(join(folder, "a-")), { create: true });
  let outcome: RunOutcome | undefined;
  for (let job = 0; job < jobs; job++) {
    outcome = await archiveRun({
      source: gateway,
      archive,
      run: worldRun,
      tables: ["fills", "orders"],
      clock: () => 2_000_000_000_000_000_000n,
      retry,
      wait: async () => void waits++,
      signal: new AbortController().signal,
      tool: "test",
      duckdb: sharedDuckDB,
    });
  }
  await behind.close();
  const { fills, orders } = outcome!.manifest.tables;
  return {
    fills: latestView(fills!),
    orders: latestView(orders!),
    warnings: outcome!.warnings,
    asked,
    waits,
  };
}

const others = (more: number) => (fills: string) =>
  fills.replace(/"rows":"(\d+)"/, (_, rows) => `"rows":"${Number(rows) + more}"`);
const oneMore = others(1);
const oneLess = others(-1);

test.each([true, false])(
  "transports that count a table's rows differently leave it UNVERIFIED, and the others alone (finished: %s)",
  async (final) => {
    const { fills, orders, asked, waits } = await archived({ final, restFills: oneMore });
    expect(fills).toMatchObject({ state: "UNVERIFIED", error: { code: "unverified" } });
    expect(fills.error!.message).toMatch(
      /disagree: its storage facts say \d+ rows from .* over one and \d+ rows from .* over the other$/,
    );
    expect(orders.state).toBe(final ? "COMPLETE" : "OPEN");
    expect(waits).toBe(final ? 1 : 0);
    if (final) expect(asked).toBe(5);
  },
);

test("so do first and last times that differ", async () => {
  const { fills } = await archived({
    restFills: (one) => one.replace(/"min_ts_event":"\d+"/, '"min_ts_event":"7"'),
  });
  expect(fills).toMatchObject({ state: "UNVERIFIED", error: { code: "unverified" } });
});

test("a table that one of them leaves out and the other counts is not ABSENT", async () => {
  const { fills } = await archived({ restFills: (one) => one.replace('"fills"', '"trades"') });
  expect(fills).toMatchObject({ state: "UNVERIFIED" });
  expect(fills.error!.message).toContain("and 0 rows over the other");
});

test.each([true, false])("a difference that does not last is none (finished: %s)", async (final) => {
  const { fills, asked } = await archived({
    final,
    restFills: (one, nth) => (nth === 1 ? oneLess(one) : one),
  });
  expect(fills.state).toBe(final ? "COMPLETE" : "OPEN");
  expect(asked).toBe(2);
});

test.each([true, false])(
  "what one of them counted once, and nobody since, is missed (finished: %s)",
  async (final) => {
    const { fills } = await archived({ final, restFills: (one, nth) => (nth === 1 ? oneMore(one) : one) });
    expect(fills).toMatchObject({ state: "UNVERIFIED" });
    expect(fills.error!.message).toMatch(/^the gateway reported \d+ rows/);
  },
);

test("facts of a finished run that lag on one transport are asked for again after a pause", async () => {
  const restFills = (one: string, _: number, waits: number) => (waits === 0 ? oneLess(one) : one);
  const { fills, asked, waits } = await archived({ restFills });
  expect([fills.state, asked, waits]).toEqual(["COMPLETE", 4, 1]);
});

test("the other transport is asked once a fetch, and not by a job that finds nothing to do", async () => {
  const { fills, asked } = await archived({ jobs: 2 });
  expect(fills.state).toBe("COMPLETE");
  expect(asked).toBe(1);
});

test("one without facts has nothing to compare, and one that fails is a warning", async () => {
  expect(await archived({ status: 404 })).toMatchObject({ fills: { state: "COMPLETE" }, warnings: [] });
  const { fills, warnings } = await archived({ status: 502 });
  expect(fills.state).toBe("COMPLETE");
  expect(warnings).toEqual([
    "the storage facts of REST and RPC could not be compared: the gateway answered 502",
  ]);
});

test("a single transport is compared with nothing", async () => {
  const { fills, asked } = await archived({ transport: "rpc", restFills: oneMore });
  expect(fills.state).toBe("COMPLETE");
  expect(asked).toBe(0);
});
