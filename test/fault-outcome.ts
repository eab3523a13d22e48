import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { openArchive } from "../src/archive/archive.ts";
import type { Manifest, TableManifest, TableState } from "../src/archive/manifest.ts";
import { archiveRun } from "../src/extract/archive-run.ts";
import { openRestGateway } from "../src/gateway/rest-gateway.ts";
import { openRpcGateway } from "../src/gateway/rpc-gateway.ts";
import type { ErrorCode } from "../src/model/error.ts";
import { parseFault } from "../src/serve/fault.ts";
import { serve } from "../src/serve/server.ts";
import { parquetLines, segmentLines } from "./archived-lines.ts";
import { smallWorld, worldRun } from "./archived-world.ts";
import { ArraySource } from "./array-source.ts";

/** How the gateway is spoken to: over REST with storage facts, or without them, or over RPC. */
export type Mode = "facts" | "literal" | "rpc";
const openers = { facts: openRestGateway, literal: openRestGateway, rpc: openRpcGateway };

/** What has to come out of a run whose fills have a fault, and of its orders always: COMPLETE. */
export interface Outcome {
  readonly state: TableState;
  readonly code?: ErrorCode;
  /** Parts of the error's message or hint, of the drift, or of the quarantined record. */
  readonly says?: readonly string[];
  /** The row that was set aside, from 1; every other row is in Parquet. */
  readonly aside?: number;
  /** What the archive holds: every row, every row in Parquet only, or none. Without rows set aside only. */
  readonly holds?: "world" | "world in Parquet" | "nothing" | "some";
}

export const whole: Outcome = { state: "COMPLETE", holds: "world" };
export const failing = (code: ErrorCode, ...says: string[]): Outcome => ({
  state: "INCOMPLETE",
  code,
  says,
  holds: "nothing",
});
export const aside = (row: number, ...says: string[]): Outcome => ({
  state: "QUARANTINED",
  aside: row,
  says,
});
export const drifted: Outcome = { state: "COMPLETE", says: ["unexpected"], holds: "world in Parquet" };

export const fills = smallWorld()
  .get("fills")!
  .map(({ line }) => line);

/** Archives fills and orders of the small world through the client, from a server that has the faults. */
export async function archiveFrom(dir: string, faults: readonly string[], mode: Mode) {
  const archive = await openArchive(dir, { create: true });
  const source = new ArraySource(worldRun, smallWorld());
  const served = await serve({
    source,
    host: "127.0.0.1",
    port: 0,
    transports: [mode === "rpc" ? "rpc" : "rest"],
    literal: mode === "literal",
    faults: faults.map(parseFault),
    // pages small enough that a slice takes several
    ...(mode === "rpc" ? { maxRowsPerAnswer: 4 } : {}),
  });
  try {
    await using gateway = openers[mode]({
      baseUrl: served.url,
      backoffBaseMs: 1,
      backoffMaxMs: 2,
      bodyIdleTimeoutMs: 150,
      // only a server that never answers is as slow
      headersTimeoutMs: 2_000,
    });
    const { manifest } = await archiveRun({
      source: gateway,
      archive,
      run: worldRun,
      tables: ["fills", "orders"],
      clock: () => 2_000_000_000_000_000_000n,
      random: () => 0,
      signal: new AbortController().signal,
      tool: "test",
      settings: { segmentBytes: 4000, sliceRows: 10, concurrency: 2, backoffBaseMs: 0 },
    });
    return { archive, manifest, retries: manifest.retries + gateway.stats.retries };
  } finally {
    await served.close();
  }
}

type Archived = Awaited<ReturnType<typeof archiveFrom>>;

export async function expectOutcome({ archive, manifest }: Archived, outcome: Outcome): Promise<void> {
  const table = manifest.tables.fills!;
  expect({ state: table.state, code: table.error?.code, run: manifest.state }).toEqual({
    state: outcome.state,
    code: outcome.code,
    run: outcome.state,
  });
  expect(manifest.tables.orders!.state).toBe("COMPLETE");
  const lines = await segmentLines(archive, worldRun, "fills");
  const rows = await parquetLines(archive, worldRun, "fills");
  // fewer Parquet rows than lines only where the table says that it failed
  if (table.error === null) expect(rows.length).toBe(lines.length);
  switch (outcome.holds) {
    case "world":
      expect(lines).toEqual(fills);
      expect(rows).toEqual(fills);
      break;
    case "world in Parquet":
      expect(lines).toHaveLength(fills.length);
      expect(rows).toEqual(fills);
      break;
    case "nothing":
      expect([...lines, ...rows, ...table.segments, ...table.parquet]).toEqual([]);
  }
  const set = await setAside(archive, manifest, table);
  if (outcome.aside === undefined) expect(set).toEqual([]);
  else await expectAside(set, lines, rows, outcome.aside);
  const told = [table.error?.message, table.error?.hint, ...table.drift, JSON.stringify(set)].join("\n");
  for (const text of outcome.says ?? []) expect(told).toContain(text);
  if (table.error !== null) expect(table.error.hint).not.toBe(null);
}

/** The records that the table's quarantine holds. */
async function setAside(archive: Archived["archive"], manifest: Manifest, table: TableManifest) {
  const records: { reason: string; raw: string; line: number }[] = [];
  for (const { file, rows } of table.quarantine) {
    const text = await readFile(join(archive.layout.quarantineDir(manifest), file), "utf8");
    const parsed = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(parsed).toHaveLength(rows);
    records.push(...parsed);
  }
  return records;
}

/** One row is set aside as it came, and each of the others is in segments and in Parquet. */
async function expectAside(
  set: readonly { raw: string; reason: string; line: number }[],
  lines: readonly string[],
  rows: readonly string[],
  row: number,
): Promise<void> {
  const others = fills.filter((_, i) => i !== row - 1);
  expect(lines).toEqual(others);
  expect(rows).toEqual(others);
  expect(set).toHaveLength(1);
  const { raw, reason, line } = set[0]!;
  expect(reason).not.toBe("");
  expect(line).toBeGreaterThan(0);
  // what the fault leaves of the row: its trade id, which no fault above touches, or the front half of the line
  const sent = fills[row - 1]!;
  expect(raw.includes(`"trade_id":"trade_id-${row - 1}"`) || sent.startsWith(raw)).toBe(true);
}
