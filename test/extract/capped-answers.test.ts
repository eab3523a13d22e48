// @module-tag slow
import { describe, expect, it } from "vitest";
import type { TableManifest } from "../../src/archive/manifest/manifest.ts";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import { type TableName, tableNames } from "../../src/model/profile/table.ts";
import { at, hours, run, TableWorld } from "../fixtures/archive/table-world.ts";
import { type ArrayRow, ArraySource, rowsAt } from "../fixtures/source/array-source.ts";
import { type CappedGatewayOptions, serveCapped } from "../fixtures/source/capped-gateway.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

/** Events, each as long as the size says, and as hard to pack as letters at random. */
function events(sizes: readonly number[], times: readonly number[], symbols = ["A"]): ArrayRow[] {
  const random = randomFrom(1);
  const letter = () => String.fromCharCode(97 + Math.floor(random() * 26));
  return rowsAt(run, "events", times.map(at), symbols).map((row, i) => {
    const text = Array.from({ length: sizes[i]! }, letter).join("");
    return { ...row, line: row.line.replace(/"message":"[^"]*"/, `"message":"${text}"`) };
  });
}

/** Numbers from 0 to 1 by a seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const alike = <T>(count: number, value: T) => Array<T>(count).fill(value);

/** What becomes of events and of one more table over HTTP. */
async function archived(rows: readonly ArrayRow[], options: CappedGatewayOptions, bars = 0) {
  await using tables = await TableWorld.create();
  const all = new Map<TableName, ArrayRow[]>([["events", [...rows]]]);
  if (bars > 0) all.set("bars", rowsAt(run, "bars", hours(bars).map(at)));
  const source = new ArraySource(run, all, { literal: true, times: { started: at(0), ended: at(1000) } });
  await using server = await serveCapped(source, options);
  await using gateway = openGateway(
    { baseUrl: server.url, compressed: true, retry: quickRetry({ retries: 0 }) },
    "rest",
  );
  const seen = new SeenSource({ routes: [...tableNames], empty: {} });
  const { manifest } = await tables.archiveRun(gateway, { seen, tables: [...all.keys()] });
  return manifest.tables.events!;
}

const stateOf = (table: TableManifest) => {
  const { state, certificate, error } = latestView(table);
  return { state, rows: certificate?.rows, restsOn: certificate?.restsOn.at(-1), error: error?.message };
};

describe("a last timestamp that a cap cut, with a small row ahead of it in the room that was left", () => {
  const smallAhead = events([...alike(140, 20), ...alike(60, 700)], [...hours(140), ...alike(60, 500)]);

  it.each([
    ["bytes of text", { cap: { text: 24_000 } }],
    ["bytes on the wire", { cap: { wire: 11_000 }, isCompressed: true }],
  ] as const)("is not COMPLETE where the cap is of %s", async (_, options) => {
    const table = stateOf(await archived(smallAhead, options));
    expect(table).toMatchObject({ state: "UNVERIFIED" });
    expect(table.error).toMatch(/^nothing proves that ts_event \d+ .* has no more than \d+ rows/);
  });
});
