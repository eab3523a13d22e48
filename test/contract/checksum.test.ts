// @module-tag slow
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import { gatewayHash } from "../../src/extract/proof/hashed.ts";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import { openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { transportChoices } from "../../src/gateway/transport-choice.ts";
import { type TableName, tableNamed, tableNames } from "../../src/model/profile/table.ts";
import type { HistorySource, RunRef } from "../../src/model/source.ts";
import type { TimeBounds } from "../../src/model/time.ts";
import { serve } from "../../src/serve/server.ts";
import { at, hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { startIndependentGateway } from "../fixtures/source/independent-gateway.ts";

const signal = new AbortController().signal;
const hashes = "named";

/** A row checksum as the contract's comments describe it, made without the code that makes it. */
function checksumOf(lines: readonly string[]): { rows: bigint; hash: bigint } {
  const first = (line: string) => BigInt(`0x${createHash("md5").update(line).digest("hex").slice(0, 16)}`);
  return { rows: BigInt(lines.length), hash: lines.reduce((sum, line) => sum + first(line), 0n) };
}

function asked(source: HistorySource, table: TableName, bounds: TimeBounds = {}, of: RunRef = run) {
  return gatewayHash(source, of, tableNamed(table), bounds, signal);
}

/** A source over the rows of another, and what it takes to open it. */
type Around = (rows: ArraySource) => Promise<{ source: HistorySource } & AsyncDisposable>;

const served =
  (open: (baseUrl: string) => HistorySource): Around =>
  async (rows) => {
    const server = await serve({ source: rows, host: "127.0.0.1", port: 0 });
    const source = open(server.url);
    return {
      source,
      [Symbol.asyncDispose]: async () => {
        await source[Symbol.asyncDispose]();
        await server.close();
      },
    };
  };

const archived =
  (fingerprint: boolean): Around =>
  async (rows) => {
    const tables = await TableWorld.create();
    await tables.archiveRun(rows, { settings: { fingerprint } });
    const source = openArchiveSource(tables.archive);
    return {
      source,
      [Symbol.asyncDispose]: async () => {
        await source[Symbol.asyncDispose]();
        await tables[Symbol.asyncDispose]();
      },
    };
  };

const arounds: (readonly [string, Around])[] = [
  ...transportChoices.map(
    (choice) =>
      [`a served source over ${choice}`, served((baseUrl) => openGateway({ baseUrl }, choice))] as const,
  ),
  ["an archive", archived(false)],
  ["an archive whose certificates have row hashes", archived(true)],
];

describe.each(arounds)("the row checksum of %s", (_, around) => {
  const fills = world({ fills: hours(60), orders: [] });

  test("is that of the rows of the whole run, of a window, and of a table without rows", async () => {
    const rows = new ArraySource(run, fills, { hashes });
    await using opened = await around(rows);
    for (const bounds of [{}, { from: at(7) }, { from: at(7), to: at(31) }, { to: at(0) }]) {
      const lines = rows.rowsWithin("fills", bounds).map(({ line }) => line);
      expect(await asked(opened.source, "fills", bounds)).toEqual({ hash: checksumOf(lines) });
      expect(await asked(opened.source, "orders", bounds)).toEqual({ hash: { rows: 0n, hash: 0n } });
    }
  });

  test("is another one after a row changed, in every window that has it, and in no other", async () => {
    const rows = fills.get("fills")!;
    const changed = [...rows.slice(0, 20), ...repriced(rows.slice(20, 21)), ...rows.slice(21)];
    await using before = await around(new ArraySource(run, fills, { hashes }));
    await using after = await around(new ArraySource(run, new Map([["fills", changed]]), { hashes }));
    const differs = async (bounds: TimeBounds) =>
      JSON.stringify(await asked(before.source, "fills", bounds), text) !==
      JSON.stringify(await asked(after.source, "fills", bounds), text);
    expect(await differs({})).toBe(true);
    expect(await differs({ from: at(20), to: at(21) })).toBe(true);
    expect(await differs({ to: at(20) })).toBe(false);
    expect(await differs({ from: at(21) })).toBe(false);
  });
});

describe("the row checksum of an archive", () => {
  test("names its own fields, though its gateway named none; without it the gateway's fingerprint stays", async () => {
    const rows = new ArraySource(run, world({ fills: hours(20) }));
    await using opened = await archived(false)(rows);
    expect(await asked(opened.source, "fills")).toEqual({ hash: checksumOf(lines(rows)) });
    expect((await opened.source.facts(run, {}))!.get("fills")!.schemaFingerprint).toBe("1");
  });

  test("is none where rows are set aside that its gateway counts, served or not", async () => {
    const rows = new ArraySource(run, world({ fills: hours(20) }));
    const [first, ...rest] = rows.tables.get("fills")!;
    const odd = { ...first!, line: first!.line.replace(/"price":"[^"]*"/, '"price":"abc"') };
    rows.tables.set("fills", [odd, ...rest]);
    await using tables = await TableWorld.create();
    expect((await tables.archiveRun(rows)).manifest.state).toBe("QUARANTINED");
    for (const allowIncomplete of [true, false]) {
      await using source = openArchiveSource(tables.archive, { allowIncomplete });
      expect(await asked(source, "fills")).toEqual({
        hash: null,
        why: expect.stringContaining("gives no row checksum"),
      });
    }
  });
});

function lines(rows: ArraySource): string[] {
  return rows.tables.get("fills")!.map(({ line }) => line);
}

const text = (_: string, value: unknown) => (typeof value === "bigint" ? value.toString() : value);

describe("the row checksum of a gateway written from the document alone", () => {
  const of = { instanceId: "momentum-1", runId: "run-2" };

  test("is that of its lines, in every table, and another one once a row changed", async () => {
    const gateway = await startIndependentGateway({ facts: true });
    await using source = openRestGateway({ baseUrl: gateway.url });
    try {
      for (const table of tableNames) {
        const lines = gateway.lines(of.instanceId, of.runId, table);
        expect([table, await asked(source, table, {}, of)]).toEqual([table, { hash: checksumOf(lines) }]);
      }
      const before = await asked(source, "fills", {}, of);
      gateway.alter("run-2", "fills", 3, { price: "777" });
      expect(await asked(source, "fills", {}, of)).not.toEqual(before);
    } finally {
      await gateway.close();
    }
  });

  test("is not compared where nobody says which fields it covers, nor is one that it does not have", async () => {
    for (const [checksums, why] of [
      ["opaque", /does not say which fields/],
      ["unknown", /gives no row checksum/],
    ] as const) {
      const gateway = await startIndependentGateway({ facts: true, checksums });
      await using source = openRestGateway({ baseUrl: gateway.url });
      try {
        expect(await asked(source, "fills", {}, of)).toEqual({ hash: null, why: expect.stringMatching(why) });
        // the facts are there all the same
        const facts = (await source.facts(of, {}, undefined, { withHash: true, table: "fills" }))!;
        expect([...facts.keys()]).toEqual(["fills"]);
        expect(facts.get("fills")?.rows).toBe((await source.facts(of, {}))?.get("fills")?.rows);
      } finally {
        await gateway.close();
      }
    }
  });
});
