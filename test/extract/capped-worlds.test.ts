// @module-tag slow
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { BufferPool } from "../../src/extract/fetch/buffer-pool.ts";
import { openWindow, scanTable } from "../../src/extract/plan/full-scan.ts";
import { showWholeEnds } from "../../src/extract/proof/capped-end.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { at, run } from "../fixtures/archive/table-world.ts";
import { type ArrayRow, ArraySource } from "../fixtures/source/array-source.ts";
import { type CappedGatewayOptions, serveCapped } from "../fixtures/source/capped-gateway.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { eventsOf, randomFrom } from "../fixtures/source/sized-events.ts";
import { trialCount, trialSeed } from "../fixtures/trials/trials.ts";

/** A world by its seed: events that end with many at one instant, and a cap of some kind that cuts answers ahead of it. */
function worldOf(seed: number) {
  const random = randomFrom(seed);
  const between = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  const [small, large] = [between(0, 300), between(0, 900)];
  const aheadCount = between(20, 150);
  const lastCount = random() < 0.25 ? 1 : between(2, 80);
  const sizes = [
    ...Array.from({ length: aheadCount }, () => between(0, small)),
    ...Array.from({ length: lastCount }, () => between(Math.floor(large * 0.9), large)),
  ];
  const atOnce = between(1, 3);
  const times = sizes.map((_, i) => (i < aheadCount ? Math.floor(i / atOnce) : 500));
  const symbols = random() < 0.5 ? ["A"] : ["A", "B", "C"];
  const rows = eventsOf(run, sizes, times.map(at), symbols, random);
  const kind = (["rows", "text", "wire"] as const)[between(0, 2)]!;
  const bytes = rows.reduce((sum, { line }) => sum + line.length + 1, 0);
  const part = 0.05 + random() * 0.9;
  const cap =
    kind === "rows"
      ? { rows: Math.ceil(rows.length * part) }
      : { [kind]: Math.ceil(bytes * part * (kind === "wire" ? 0.4 : 1)) };
  const options: CappedGatewayOptions = {
    cap,
    isCompressed: kind === "wire" || random() < 0.5,
    ...(random() < 0.5 ? {} : { resources: symbols.map((symbol) => ({ table: "events", symbol })) }),
  };
  return { rows, options, lastCount };
}

async function outcomeOf(seed: number) {
  const { rows, options, lastCount } = worldOf(seed);
  const source = new ArraySource(run, new Map([["events", rows]]), { literal: true });
  await using server = await serveCapped(source, options);
  await using gateway = openGateway(
    { baseUrl: server.url, compressed: true, retry: quickRetry({ retries: 0 }) },
    "rest",
  );
  const seen = new SeenSource();
  const mostBytes = 64 << 20;
  const work = {
    source: gateway,
    pool: new BufferPool(3, 200_000),
    ...{ segmentBytes: 100_000, mostBytes, retry: quickRetry(), seen },
    signal: new AbortController().signal,
    onRows: () => {},
  };
  const table = tableNamed("events");
  const asks = { ...work, run, table };
  const end = rows.slice(-lastCount);
  const told = { seed, options, of: rows.length, isRoomy: isRoomy(end, options) };
  let came = 0;
  try {
    const { record: scan } = await scanTable(run, table, [openWindow(undefined)], undefined, work);
    came = scan.rows;
    await showWholeEnds(asks, scan.openEnds, mostBytes, seen);
    return { ...told, came, isShown: true };
  } catch (error) {
    if (!(error instanceof RunvaultError)) throw error;
    return { ...told, came, isShown: false, error: error.message };
  }
}

/** Whether three ends and some rows more would go into one answer: what an honest gateway has to be believed by. */
function isRoomy(end: readonly ArrayRow[], { cap = {} }: CappedGatewayOptions): boolean {
  const text = Buffer.from(end.map(({ line }) => `${line}\n`).join(""));
  const row = text.byteLength / end.length;
  const { rows = Number.POSITIVE_INFINITY, text: bytes = rows, wire = rows } = cap;
  return (
    rows >= 3 * end.length + 12 &&
    bytes >= 3 * text.byteLength + 12 * row &&
    wire >= 3 * gzipSync(text).byteLength + 12 * row
  );
}

test("no table is shown whole of which rows are missing, and no honest one is doubted, whatever a cap counts", async () => {
  for (let seed = 0; seed < trialCount(50); seed++) {
    const outcome = await outcomeOf(trialSeed * 10_000 + seed);
    const isWhole = outcome.came === outcome.of;
    expect(outcome.isShown && !isWhole, JSON.stringify(outcome)).toBe(false);
    expect(!outcome.isShown && isWhole && outcome.isRoomy, JSON.stringify(outcome)).toBe(false);
  }
});
