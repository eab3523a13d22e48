// @module-tag slow
import { expect, test } from "vitest";
import { BufferPool } from "../../src/extract/fetch/buffer-pool.ts";
import { openWindow, scanTable } from "../../src/extract/plan/full-scan.ts";
import { showWholeEnds } from "../../src/extract/proof/capped-end.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { at, run } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { type CappedGatewayOptions, serveCapped } from "../fixtures/source/capped-gateway.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { eventsOf, randomFrom } from "../fixtures/source/sized-events.ts";
import { trialCount } from "../fixtures/trials/trials.ts";

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
  let came = 0;
  try {
    const scan = await scanTable(run, table, [openWindow(undefined)], undefined, work);
    came = scan.rows;
    const shown = await showWholeEnds(asks, scan.openEnds, mostBytes, seen);
    return {
      is: "shown",
      came,
      of: rows.length,
      lastCount,
      shown,
      requests: server.requests.length,
      options,
      isCapped: seen.isCapped,
    };
  } catch (error) {
    if (!(error instanceof RunvaultError)) throw error;
    return {
      is: error.code,
      came,
      of: rows.length,
      lastCount,
      requests: server.requests.length,
      options,
      error: error.message,
      isCapped: seen.isCapped,
    };
  }
}

test("no table is shown whole of which rows are missing, whatever a cap counts", async () => {
  const first = Number(process.env.FIRST ?? 0);
  const n = Number(process.env.N ?? trialCount(50));
  const tally: Record<string, number> = {};
  for (let seed = first; seed < first + n; seed++) {
    const outcome = await outcomeOf(seed);
    const key = `${outcome.is} ${outcome.came === outcome.of ? "whole" : "missing"} ${outcome.isCapped ? "capped" : "uncapped"} ${outcome.shown ?? ""}`;
    tally[key] = (tally[key] ?? 0) + 1;
    if (process.env.SHOW && (outcome.is === "shown") !== (outcome.came === outcome.of))
      console.log(seed, JSON.stringify(outcome));
    if (!process.env.SHOW)
      expect(
        outcome.is === "shown" && outcome.came < outcome.of,
        `seed ${seed}: ${JSON.stringify(outcome)}`,
      ).toBe(false);
  }
  if (process.env.SHOW) console.log(tally);
});
