// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { BufferPool } from "../../src/extract/fetch/buffer-pool.ts";
import { segmentsOf } from "../../src/extract/fetch/fetch-slice.ts";
import type { SliceEvent } from "../../src/extract/fetch/slice.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { archiveRun } from "../../src/extract/run/archive-run.ts";
import { ArmedFaults } from "../../src/faults/armed-faults.ts";
import { parseFault } from "../../src/faults/fault.ts";
import { wireFaults } from "../../src/faults/wire-faults.ts";
import { openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { serve } from "../../src/serve/server.ts";
import { parquetLines, segmentLines } from "../fixtures/archive/archived-lines.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { type ArrayRow, ArraySource, rowsAt } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { someOf } from "../fixtures/trials/cases.ts";

const run = { instanceId: "a", runId: "r" };
/** Early enough to be written in few digits. */
const start = 41n;
/** Rows of the shortest lines there are, with empty strings, for few bytes to cut after. */
const shortRows = (...times: bigint[]): ArrayRow[] =>
  rowsAt(run, "factors", times).map((row) => ({ ...row, line: row.line.replace(/"[a-z_]+-\d+"/g, '""') }));

const ways = [
  ["counted", false],
  ["exhausted", true],
] as const;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-cut-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const linesOf = (rows: readonly ArrayRow[]) => rows.map(({ line }) => line);
const textOf = (rows: readonly ArrayRow[]) =>
  linesOf(rows)
    .map((line) => `${line}\n`)
    .join("");

/** A server of rows and a client of it, for trial after trial: each arms its own faults. */
async function openCutGateway(rows: readonly ArrayRow[], literal: boolean) {
  const source = new ArraySource(run, new Map([["factors", [...rows]]]));
  const faults = new ArmedFaults([]);
  const served = await serve({ source, host: "127.0.0.1", port: 0, literal, wire: wireFaults(faults) });
  const gateway = openRestGateway({ baseUrl: served.url, retry: quickRetry() });
  return {
    source,
    gateway,
    arm: (texts: readonly string[]) => faults.arm(texts.map(parseFault)),
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]();
      await served.close();
    },
  };
}
type CutGateway = Awaited<ReturnType<typeof openCutGateway>>;

async function archiveCut(opened: CutGateway, faults: readonly string[]) {
  const archive = await openArchive(await mkdtemp(join(folder, "archive-")), { create: true });
  opened.arm(faults);
  // larger answers of another run show that no cap ends those of two rows
  const seen = new SeenSource();
  seen.answered("bars", { rows: 100, bytes: 100_000, wireBytes: 100_000 });
  const before = opened.source.asked.length;
  const { manifest } = await archiveRun({
    source: opened.gateway,
    archive,
    run,
    tables: ["factors"],
    clock: () => start,
    retry: quickRetry({ retries: faults.length + 1 }),
    signal: new AbortController().signal,
    tool: "test",
    duckdb: sharedDuckDB,
    seen,
    settings: { segmentBytes: 1000, concurrency: 1 },
  });
  return {
    asked: opened.source.asked.length - before,
    table: manifest.tables.factors!,
    lines: await segmentLines(archive, run, "factors"),
    parquet: await parquetLines(archive, run, "factors"),
  };
}

describe.each(someOf(ways, 2))("a small stream cut after every byte, proof %s", (proof, literal) => {
  // the second and the third share a timestamp: a cut between them is no end of it
  const rows = shortRows(start, start + 5n, start + 5n);
  const bytes = Buffer.byteLength(textOf(rows));

  const ends = rows.map((_, i) => Buffer.byteLength(textOf(rows.slice(0, i + 1))));
  /** A clean end ahead of all rows is an empty answer: the run's counts, or the full scan's second pass, find it later. */
  const canTell = (kind: string, at: number) => kind === "cut-bytes" || at > 0;

  let opened: CutGateway;
  beforeAll(async () => {
    opened = await openCutGateway(rows, literal);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  it.each(["cut-bytes", "cut-bytes-clean"])("brings every row once with %s", async (kind) => {
    for (let at = 0; at <= bytes; at += 1) {
      opened.arm([`${kind}@factors:${at}`]);
      const stored: Buffer[] = [];
      const slice = { run, table: tableNamed("factors"), bucket: "all", from: start, to: start + 10n };
      const take = async (events: AsyncIterable<SliceEvent>) => {
        for await (const event of events) {
          if (event.kind === "restart") throw new Error("these rows are in order");
          if (event.kind === "end") return event;
          stored.push(Buffer.from(event.text));
          event.release();
        }
        throw new Error("the slice has no end");
      };
      const events = segmentsOf(
        { ...slice, expected: literal ? undefined : rows.length },
        {
          source: opened.gateway,
          pool: new BufferPool(2, 1 << 16),
          segmentBytes: 1000,
          mostBytes: 1 << 20,
          retry: quickRetry({ retries: 2 }),
          signal: new AbortController().signal,
          countRows: literal
            ? undefined
            : async (from, to) => opened.source.rowsWithin("factors", { from, to }).length,
          onRows: () => {},
          seen: new SeenSource(),
        },
      );
      const { rows: count } = await take(events).catch((error: unknown) => ({ rows: -1, error }));
      const text = Buffer.concat(stored).toString();
      if (!canTell(kind, at)) {
        expect({ at, text }).toEqual({ at, text: "" });
        continue;
      }
      expect({ at, count, text }).toEqual({ at, count: rows.length, text: textOf(rows) });
    }
  });

  it("is archived whole by one job that meets all the cuts in turn", async () => {
    // one timestamp, so that each answer after a cut is the same again
    const tied = shortRows(start, start);
    const size = Buffer.byteLength(textOf(tied));
    const faults = Array.from({ length: size }, (_, i) => `cut-bytes@factors:${size - 1 - i}`);
    await using tiedGateway = await openCutGateway(tied, literal);
    const { asked, table, lines, parquet } = await archiveCut(tiedGateway, faults);
    expect(asked).toBeGreaterThan(size);
    expect(table).toMatchObject({ state: "COMPLETE", proven: { certificate: { proof, rows: 2 } } });
    expect([lines, parquet]).toEqual([linesOf(tied), linesOf(tied)]);
  });

  it.each(["cut-bytes", "cut-bytes-clean"])("is archived whole wherever %s falls", async (kind) => {
    // before the first byte, within a line, at and around line ends, ahead of the last byte
    for (const at of [0, 1, ends[0]! - 2, ends[0]!, ends[0]! + 1, ends[1]!, ends[2]! - 1]) {
      const { table, lines, parquet } = await archiveCut(opened, [`${kind}@factors:${at}`]);
      expect([lines, parquet]).toEqual([linesOf(rows), linesOf(rows)]);
      if (literal && kind === "cut-bytes-clean" && table?.state === "UNVERIFIED") {
        // an answer that stopped short without a word leaves the last timestamp of so few rows open
        expect(table.attempt.error?.message, `cut at ${at}`).toContain("answers of this table stop short");
        continue;
      }
      expect(table, `cut at ${at}`).toMatchObject({
        state: "COMPLETE",
        attempt: { error: null },
        proven: { certificate: { proof, rows: rows.length } },
      });
    }
  });
});
