// @module-tag slow
import { readdir, readFile, rename, rm, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { type VerifyReport, verifyRun } from "../../src/archive/verify/verify.ts";
import {
  ArchiveUnderTest,
  archiveWorld,
  failedChecks,
  reportOf,
  smallWorld,
  verifyAll,
  worldRun,
} from "../fixtures/archive/archived-world.ts";
import { ArraySource, rowsAt } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

let under: ArchiveUnderTest;
beforeAll(async () => {
  under = await ArchiveUnderTest.create();
});
afterAll(() => under[Symbol.asyncDispose]());
beforeEach(() => under.renew());

/** Notices that are neither of a passed check nor of files a former generation left. */
function notices(report: VerifyReport): string[] {
  return report.checks
    .filter(({ level }) => level === "notice")
    .map(({ table, check }) => `${table ?? "run"} ${check}`);
}

function damaged(report: VerifyReport, file: string): string[] {
  return report.checks
    .filter(({ level, files }) => level === "damaged" && files.some((name) => name.endsWith(file)))
    .map(({ check }) => check);
}

async function flip(file: string, at = 0.5): Promise<void> {
  const bytes = await readFile(file);
  const index = Math.floor(bytes.length * at);
  bytes[index] = bytes[index]! ^ 1;
  await writeFile(file, bytes);
}

describe("an undamaged archive", () => {
  it.each([false, true])("passes every check, deep: %s", async (deep) => {
    const report = await reportOf(under.archive, worldRun, { deep });
    expect(failedChecks(report)).toEqual([]);
    expect(notices(report)).toEqual([]);
    expect(report).toMatchObject({ damaged: false, unproven: false, exit: 0, generation: 1 });
    const names = new Set(report.checks.map(({ check }) => check));
    for (const check of ["manifest", "documents", "files", "segment-lines", "parquet-rows", "links"]) {
      expect(names).toContain(check);
    }
    for (const check of [
      "lines",
      "row-hash",
      "order",
      "bounds",
      "identity",
      "seq-unique",
      "fills-have-orders",
    ]) {
      expect(names.has(check as never)).toBe(deep);
    }
    expect(under.manifest.tables.fills!.proven!.segments.length).toBeGreaterThan(1);
  });

  it("passes when the rows came unsorted, printed with blanks, and with more zeros than needed", async () => {
    const rows = smallWorld();
    const fills = rows.get("fills")!;
    for (const [i, row] of fills.entries()) {
      const line = row.line
        .replaceAll('":"', '" : "')
        .replace(/"price" : "([\d.]+)"/, '"price" : "$100"')
        .replace("symbol", "\\u0073ymbol");
      fills[i] = { ...row, line: i % 2 === 0 ? line : row.line };
    }
    fills.splice(5, 3, fills[7]!, fills[6]!, fills[5]!);
    const made = await archiveWorld(join(under.folder, "other"), new ArraySource(worldRun, rows));
    expect(made.manifest.tables.fills!.proven!.segments).toContainEqual(
      expect.objectContaining({ sorted: false }),
    );
    const report = await reportOf(made.archive, worldRun, { deep: true });
    expect(failedChecks(report)).toEqual([]);
    const { fills: archived } = (await reportOf(under.archive, worldRun, { deep: true })).checks
      .filter(({ check }) => check === "row-hash")
      .reduce<Record<string, string>>(
        (all, { table, detail }) => Object.assign(all, { [table!]: detail }),
        {},
      );
    const own = report.checks.find(({ table, check }) => table === "fills" && check === "row-hash");
    expect(own?.detail).toBe(archived);
  });

  it("reports progress up to the number of rows, each twice when deep", async () => {
    const seen: number[] = [];
    let total = 0;
    await verifyRun(under.archive, worldRun, {
      deep: true,
      onProgress: ({ rows, totalRows }) => {
        seen.push(rows);
        total = totalRows;
      },
    });
    expect(total).toBe(2 * 25 * 3);
    expect(seen.at(-1)).toBe(total);
  });

  it("stops when its signal says so", async () => {
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(verifyRun(under.archive, worldRun, { signal })).rejects.toThrow("enough");
  });

  it("is not there for a run that was never committed", async () => {
    await expect(verifyRun(under.archive, { instanceId: "alpha", runId: "x" })).rejects.toMatchObject({
      code: "not_archived",
    });
  });
});

describe("archives that hold less than all", () => {
  const year = 31_557_600_000_000_000n;

  it("pass for a run that goes on, over several buckets, up to its horizon", async () => {
    const times = Array.from({ length: 12 }, (_, i) => 1_640_995_199_000_000_001n + (BigInt(i) * year) / 4n);
    const rows = new Map((["fills", "orders"] as const).map((name) => [name, rowsAt(worldRun, name, times)]));
    const source = new ArraySource(worldRun, rows, { final: false });
    const made = await archiveWorld(join(under.folder, "growing"), source, { tables: ["fills", "orders"] });
    expect(latestView(made.manifest.tables.fills)).toMatchObject({ state: "OPEN", grain: "year" });
    expect(made.manifest.tables.fills!.proven!.parquet.length).toBeGreaterThan(2);
    const report = await reportOf(made.archive, worldRun, { deep: true });
    expect(failedChecks(report)).toEqual([]);
    expect(report.exit).toBe(0);
    expect(notices(report)).toEqual(["fills fills-have-orders"]);
  });

  it("exit 4 with rows set aside, whose records are checked, too", async () => {
    const rows = smallWorld();
    const bars = rows.get("bars")!;
    bars[4] = { ...bars[4]!, line: bars[4]!.line.replace(/"close":"[^"]*"/, '"close":7') };
    const made = await archiveWorld(join(under.folder, "aside"), new ArraySource(worldRun, rows), {
      tables: ["bars", "fills", "orders"],
    });
    const report = await reportOf(made.archive, worldRun, { deep: true });
    expect(failedChecks(report)).toEqual(["bars state", "run state"]);
    expect(report).toMatchObject({ damaged: false, exit: 4 });
    const { file } = latestView(made.manifest.tables.bars!).quarantine[0]!;
    await flip(join(made.archive.layout.quarantineDir(worldRun), file));
    const after = await reportOf(made.archive, worldRun);
    expect(damaged(after, file)).toEqual(["files"]);
    expect(after.exit).toBe(5);
  });

  it("exit 4 with a table whose gateway failed", async () => {
    const source = new ArraySource(worldRun, smallWorld(), { cuts: Array.from({ length: 200 }, () => 900) });
    const made = await archiveWorld(join(under.folder, "cut"), source, {
      tables: ["fills"],
      retry: quickRetry({ retries: 1 }),
    });
    expect(made.manifest.tables.fills?.state).toBe("INCOMPLETE");
    const report = await reportOf(made.archive, worldRun, { deep: true });
    expect(report).toMatchObject({ damaged: false, unproven: true, exit: 4 });
    expect(failedChecks(report)).toEqual(["fills state", "run state"]);
  });
});

describe("damaged files", () => {
  it.each([
    ["segment", () => under.manifest.tables.bars!.proven!.segments[1]!.file],
    ["Parquet file", () => under.manifest.tables.bars!.proven!.parquet[0]!.file],
  ])("a flipped byte, a cut and a missing %s are found and named", async (_, fileOf) => {
    const file = under.dataFile(fileOf());
    const whole = await readFile(file);
    for (const damage of [
      () => flip(file, 0),
      () => flip(file, 0.5),
      () => flip(file, 0.999),
      () => writeFile(file, whole.subarray(0, -1)),
      () => unlink(file),
    ]) {
      await damage();
      const report = await reportOf(under.archive, worldRun, { deep: true });
      expect(failedChecks(report)).toEqual(["bars files"]);
      expect(damaged(report, fileOf())).toEqual(["files"]);
      expect(report.exit).toBe(5);
      await writeFile(file, whole);
    }
  });

  it("a flipped byte in a document is found and named", async () => {
    const { file } = under.manifest.documents.summary!;
    await flip(under.dataFile(file));
    const report = await reportOf(under.archive, worldRun);
    expect(failedChecks(report)).toEqual(["run documents"]);
    expect(damaged(report, file)).toEqual(["documents"]);
  });

  it("files swapped between two runs are found on both sides", async () => {
    const other = { ...worldRun, runId: "2022-01-02" };
    const made = await archiveWorld(under.archive.dir, new ArraySource(other, smallWorld(25, other)));
    const [a, b] = [under.manifest, made.manifest].map((m) =>
      join(under.archive.layout.dataDir(m), m.tables.fills!.proven!.parquet[0]!.file),
    );
    await rename(a!, `${a}.aside`);
    await rename(b!, a!);
    await rename(`${a}.aside`, b!);
    const reports = await verifyAll(under.archive);
    expect(reports.map(({ run }) => run.runId)).toEqual(["2022-01-01", "2022-01-02"]);
    // the folder of links still leads to the bytes that were committed for the other name
    for (const report of reports) expect(failedChecks(report)).toEqual(["fills files"]);
  });

  it("files that no manifest names, and links that are missing or stale, are notices", async () => {
    await writeFile(under.dataFile("bars.g1.000099.ndjson.zst"), "x");
    const links = under.archive.layout.tableDir("fills", worldRun);
    const [name = ""] = await readdir(links);
    await rm(join(links, name));
    await rm(under.archive.layout.tableDir("bars", worldRun), { recursive: true });
    await writeFile(join(links, name), "stale");
    await writeFile(join(under.archive.layout.tableDir("orders", worldRun), "1999.parquet"), "x");
    const report = await reportOf(under.archive, worldRun);
    expect(report).toMatchObject({ damaged: false, exit: 0 });
    expect(notices(report).sort()).toEqual(["bars links", "fills links", "orders links", "run unreferenced"]);
  });
});
