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
import { eventsOf, randomFrom } from "../fixtures/source/sized-events.ts";

const events = (sizes: readonly number[], times: readonly number[], symbols = ["A"]) =>
  eventsOf(run, sizes, times.map(at), symbols, randomFrom(1));

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

  it("is not COMPLETE either where the command that met the cap was killed ahead of the proof", async () => {
    await using tables = await TableWorld.create();
    const source = new ArraySource(run, new Map([["events", [...smallAhead]]]), {
      ...{ literal: true, capBytes: 24_000, times: { started: at(0), ended: at(1000) } },
    });
    await tables.archiveUntil(source, "segment-journalled", 1);
    const scans = () => source.asked.filter(({ from }) => from === undefined).length;
    const before = scans();
    const { manifest } = await tables.archiveRun(source);
    expect(scans()).toBe(before);
    expect(stateOf(manifest.tables.events!)).toMatchObject({ state: "UNVERIFIED" });
  });
});

describe("a last timestamp where answers of its table stop short", () => {
  // rows of the end take four times as long as those ahead, whose answers are so much larger
  const slow = [...hours(200), ...hours(10, 300), ...alike(60, 500)];
  const rowMs = ({ ts }: ArrayRow) => (ts < at(300) ? 0.5 : 2);

  it("is not COMPLETE where it took as long as those, though answers were larger: a cap may be one of time", async () => {
    const rows = events(alike(270, 20), slow);
    expect(stateOf(await archived(rows, { cap: { ms: 40 }, rowMs }))).toMatchObject({ state: "UNVERIFIED" });
  });

  it("is COMPLETE where it took less, and an answer was larger in rows, text and bytes on the wire", async () => {
    const end = slow.slice(0, -52);
    const rows = events(alike(end.length, 20), end);
    // on a busy machine the time may show nothing, and then an answer that held the end shows it
    const larger = {
      state: "COMPLETE",
      restsOn: expect.stringMatching(/^(larger answers than|an answer that held) its last/),
    };
    expect(stateOf(await archived(rows, { cap: { ms: 40 }, rowMs }))).toMatchObject(larger);
    // each answer but the last one was cut at as many rows
    const half = events(alike(1500, 20), [...hours(1000), ...alike(500, 2000)]);
    expect(stateOf(await archived(half, { cap: { rows: 1000 }, isCompressed: true }))).toMatchObject(larger);
  });

  it("is not COMPLETE by answers of more rows, where these are small", async () => {
    // three of the large rows fit, and leave less room than one of them takes
    const rows = events([...alike(200, 0), ...alike(9, 7000)], [...hours(200), ...alike(9, 500)]);
    expect(stateOf(await archived(rows, { cap: { text: 28_500 } }))).toMatchObject({ state: "UNVERIFIED" });
  });

  it("is COMPLETE where one row is held behind others, unless a cap gives hardly more", async () => {
    const rows = events(alike(30, 20), hours(30));
    expect(stateOf(await archived(rows, { cap: { rows: 4 } }))).toMatchObject({ state: "COMPLETE" });
    expect(stateOf(await archived(rows, { cap: { rows: 1 } }))).not.toMatchObject({ state: "COMPLETE" });
  });

  // four rows ahead and sixty at the end, of which an answer of 62 leaves room for two
  const parted = (count: number) =>
    events(alike(count + 4, 20), [...alike(4, 90), ...alike(count, 500)], ["A", "B", "C"]);
  const resources = (...symbols: string[]) => symbols.map((symbol) => ({ table: "events", symbol }));

  it("is COMPLETE by its parts where a list names all values, each part shown, and not without the list", async () => {
    const cap = { rows: 62 };
    const listed = await archived(parted(60), { cap, resources: resources("A", "B", "C", "D") });
    expect(stateOf(listed)).toMatchObject({ state: "COMPLETE", restsOn: expect.stringMatching(/^parts of/) });
    expect(stateOf(await archived(parted(60), { cap }))).toMatchObject({ state: "UNVERIFIED" });
    expect(stateOf(await archived(parted(60), { cap, resources: resources("A", "B") }))).toMatchObject({
      state: "UNVERIFIED",
    });
  });

  it("is INCOMPLETE, and named, where a part has rows of a value that was cut off", async () => {
    const rows = parted(70).map((row, i) => (i < 66 ? row : withSymbol(row, "D")));
    const table = await archived(rows, { cap: { rows: 62 }, resources: resources("A", "B", "C", "D") });
    expect(stateOf(table)).toMatchObject({
      state: "INCOMPLETE",
      error: expect.stringMatching(/^the gateway returns 62 rows at ts_event \d+/),
    });
  });
});

function withSymbol(row: ArrayRow, symbol: string): ArrayRow {
  return { ...row, symbol, line: row.line.replace(`"symbol":"${row.symbol}"`, `"symbol":"${symbol}"`) };
}
