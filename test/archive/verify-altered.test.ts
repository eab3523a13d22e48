// @module-tag slow
import { createHash } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { packSegment, readSegment } from "../../src/archive/write/segment.ts";
import { ArchiveUnderTest, failedChecks, reportOf, worldRun } from "../fixtures/archive/archived-world.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";

let under: ArchiveUnderTest;
beforeAll(async () => {
  under = await ArchiveUnderTest.create();
});
afterAll(() => under[Symbol.asyncDispose]());
beforeEach(() => under.renew());

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

describe("rows that were altered with all hashes put right", () => {
  /** Rewrites one segment's text and makes the manifest agree with the new bytes. */
  async function rewriteSegment(change: (lines: string[]) => string[]): Promise<void> {
    const segment = under.manifest.tables.fills!.proven!.segments[1]!;
    const file = under.dataFile(segment.file);
    const lines = (await readSegment(under.archive.store, under.archive.layout.keyOf(file), segment))
      .toString("utf8")
      .split("\n")
      .slice(0, -1);
    const text = Buffer.from(
      change(lines)
        .map((line) => `${line}\n`)
        .join(""),
    );
    const { frame, sha256 } = await packSegment(text);
    await writeFile(file, frame);
    await under.editManifest((m) => {
      const own = m.tables.fills!.proven!.segments[1]!;
      Object.assign(own, {
        sha256,
        bytes: text.byteLength,
        storedBytes: frame.byteLength,
        longestLine: 10_000,
      });
    });
  }

  /** Rewrites the fills' Parquet file by SQL over its rows and makes the manifest agree with the new bytes. */
  async function rewriteParquet(select: string): Promise<void> {
    const name = under.manifest.tables.fills!.proven!.parquet[0]!.file;
    const file = under.dataFile(name);
    const out = join(under.folder, "rewritten.parquet");
    const tempDirectory = join(under.folder, "staging");
    const duckdb = await sharedDuckDB.forJob({ memoryLimitMb: 200, threads: 1, tempDirectory });
    await duckdb.connection.run(`COPY (SELECT ${select} FROM '${file}') TO '${out}' (FORMAT parquet)`);
    await rename(out, file);
    const bytes = await readFile(file);
    await under.editManifest((m) => {
      Object.assign(m.tables.fills!.proven!.parquet[0]!, {
        sha256: sha256(bytes),
        storedBytes: bytes.byteLength,
      });
    });
  }

  it("a changed value in a segment's line is found by the deep check alone, with both texts", async () => {
    await rewriteSegment((lines) =>
      lines.map((line, i) => (i === 0 ? line.replace(/"fee":"[^"]*"/, '"fee":"99.5"') : line)),
    );
    expect(failedChecks(await reportOf(under.archive, worldRun))).toEqual([]);
    const report = await reportOf(under.archive, worldRun, { deep: true });
    expect(failedChecks(report)).toEqual(["fills lines", "fills row-hash"]);
    const { detail, files } = report.checks.find(({ check, ok }) => check === "lines" && !ok)!;
    expect(detail).toContain('"fee":"99.5"');
    expect(detail).toMatch(/^1 row differs, the first at row \d+: /);
    expect(files.some((file) => file.endsWith(under.manifest.tables.fills!.proven!.segments[1]!.file))).toBe(
      true,
    );
  });

  it("two lines in the wrong order, and a line that is no JSON, are found", async () => {
    await rewriteSegment((lines) => [lines[1]!, lines[0]!, ...lines.slice(2)]);
    expect(failedChecks(await reportOf(under.archive, worldRun, { deep: true }))).toEqual(["fills lines"]);
    await under.renew();
    await rewriteSegment((lines) => ["broken", ...lines.slice(1)]);
    expect(failedChecks(await reportOf(under.archive, worldRun, { deep: true }))).toContain("fills lines");
  });

  it("a row with another value, another run's id, or outside its window is found in Parquet", async () => {
    await rewriteParquet("* REPLACE (CASE WHEN seq = 9 THEN 'SELL' ELSE side END AS side)");
    expect(failedChecks(await reportOf(under.archive, worldRun, { deep: true }))).toEqual([
      "fills lines",
      "fills row-hash",
    ]);
    await rewriteParquet("* REPLACE (CASE WHEN seq = 9 THEN 'other' ELSE run_id END AS run_id)");
    expect(failedChecks(await reportOf(under.archive, worldRun, { deep: true }))).toContain("fills identity");
    await rewriteParquet(
      "* REPLACE (CASE WHEN seq = 9 THEN make_timestamp_ns(epoch_ns(ts_event) + 40000000000000) ELSE ts_event END AS ts_event)",
    );
    const found = failedChecks(await reportOf(under.archive, worldRun, { deep: true }));
    expect(found).toEqual(expect.arrayContaining(["fills bounds", "fills lines", "fills order"]));
  });

  it("a row at the end of its segment's window, which belongs to the next one, is found", async () => {
    const { layout, store } = under.archive;
    const segment = under.manifest.tables.fills!.proven!.segments[1]!;
    const text = await readSegment(store, layout.keyOf(under.dataFile(segment.file)), segment);
    const { ts_event } = JSON.parse(text.toString("utf8").trimEnd().split("\n").at(-1)!);
    await under.editManifest((m) => {
      m.tables.fills!.proven!.segments[1]!.to = ts_event;
    });
    expect(failedChecks(await reportOf(under.archive, worldRun, { deep: true }))).toEqual(["fills bounds"]);
  });

  it("a seq that stands twice, and a fill without its order, fail without being damage to files", async () => {
    await rewriteParquet("* REPLACE (CASE WHEN seq = 9 THEN 8::UBIGINT ELSE seq END AS seq)");
    expect(failedChecks(await reportOf(under.archive, worldRun, { deep: true }))).toContain(
      "fills seq-unique",
    );
    await rewriteParquet(
      "* REPLACE (CASE WHEN epoch_ns(ts_init) % 2 = 1 THEN 'nobody' ELSE client_order_id END AS client_order_id)",
    );
    const report = await reportOf(under.archive, worldRun, { deep: true });
    const check = report.checks.find(({ check }) => check === "fills-have-orders");
    expect(check).toMatchObject({ ok: false, level: "unproven" });
    expect(check?.detail).toContain("nobody");
  });
});
