// @module-tag slow
import { cp, readFile, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Manifest } from "../../src/archive/manifest/manifest.ts";
import {
  ArchiveUnderTest,
  archiveWorld,
  failedChecks,
  reportOf,
  smallWorld,
  verifyAll,
  worldRun,
} from "../fixtures/archive/archived-world.ts";
import { unproven } from "../fixtures/archive/unproven-table.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

let under: ArchiveUnderTest;
beforeAll(async () => {
  under = await ArchiveUnderTest.create();
});
afterAll(() => under[Symbol.asyncDispose]());
beforeEach(() => under.renew());

describe("a damaged manifest", () => {
  it("that is no JSON, or is not valid, is a report of its own, and the other runs are verified all the same", async () => {
    const other = { instanceId: "Ünï/1", runId: "2022-01-02" };
    await archiveWorld(under.archive.dir, new ArraySource(other, smallWorld(4, other)));
    const file = under.archive.layout.manifestFile(other);
    const text = await readFile(file, "utf8");
    for (const broken of [text.slice(0, -20), text.replace('"generation"', '"generatiom"'), "", "null"]) {
      await writeFile(file, broken);
      const reports = await verifyAll(under.archive);
      expect(reports.map(failedChecks)).toEqual([["run manifest"], []]);
      expect(reports[0]).toMatchObject({ run: other, generation: null, damaged: true, exit: 5 });
    }
  });

  it("that stands in another run's place is found", async () => {
    const other = { ...worldRun, runId: "2022-01-02" };
    await cp(under.archive.layout.manifestFile(worldRun), under.archive.layout.manifestFile(other));
    expect(failedChecks(await reportOf(under.archive, other))).toEqual(["run manifest"]);
    expect((await verifyAll(under.archive)).map(({ exit }) => exit)).toEqual([0, 5]);
  });

  const fills = (edited: Manifest) => edited.tables.fills!;
  it.each<[string, string[], (edited: Manifest) => void]>([
    [
      "rows of a segment",
      ["certificate", "parquet-buckets", "segment-lines"],
      (m) => fills(m).proven!.segments[0]!.rows++,
    ],
    ["bytes of a segment", ["files"], (m) => fills(m).proven!.segments[0]!.bytes++],
    ["size of a segment", ["files"], (m) => fills(m).proven!.segments[0]!.storedBytes++],
    ["longest line", ["segment-lines"], (m) => (fills(m).proven!.segments[0]!.longestLine = 3)],
    [
      "window of a segment",
      ["segment-windows"],
      (m) => (fills(m).proven!.segments[1]!.from = fills(m).proven!.segments[0]!.from),
    ],
    [
      "bucket of a segment",
      ["parquet-buckets", "segment-windows"],
      (m) => (fills(m).proven!.segments[0]!.bucket = "2022"),
    ],
    [
      "rows of a Parquet file",
      ["certificate", "parquet-buckets", "parquet-rows"],
      (m) => fills(m).proven!.parquet[0]!.rows--,
    ],
    [
      "first key of a Parquet file",
      ["certificate", "parquet-rows"],
      (m) => (fills(m).proven!.parquet[0]!.first.seq = "7"),
    ],
    ["last key of the certificate", ["certificate"], (m) => (fills(m).proven!.certificate!.last!.ts = "7")],
    ["certified rows", ["certificate"], (m) => fills(m).proven!.certificate!.rows++],
    ["the gateway's rows", ["certificate"], (m) => (fills(m).proven!.certificate!.gatewayRows = "1")],
    ["proof by a hash", ["certificate"], (m) => (fills(m).proven!.certificate!.proof = "hashed")],
    ["proof", ["state"], (m) => (fills(m).proven!.certificate!.proof = "none")],
    ["stream end", ["state"], (m) => (fills(m).proven!.certificate!.ended = "cut")],
    ["instant", ["certificate", "state"], (m) => (fills(m).proven!.certificate!.until = "7")],
    ["types", ["parquet-types"], (m) => (fills(m).proven!.exactTypes.price = "DECIMAL(18,2)")],
    ["rows set aside", ["certificate", "state"], (m) => fills(m).proven!.certificate!.quarantined++],
    ["a dropped segment", ["certificate", "parquet-buckets"], (m) => fills(m).proven!.segments.splice(1, 1)],
    ["a row hash", ["row-hash"], (m) => (fills(m).proven!.certificate!.rowHash = { rows: "25", sum: "7" })],
    ["an order of segments", ["segment-windows"], (m) => fills(m).proven!.segments.reverse()],
  ])("an edited %s is found", async (_, checks, edit) => {
    await under.editManifest(edit);
    const report = await reportOf(under.archive, worldRun, { deep: checks.includes("row-hash") });
    expect(report.exit).toBe(5);
    const damage = report.checks.filter(({ level }) => level === "damaged");
    expect(damage.every(({ table }) => table === "fills")).toBe(true);
    expect(damage.map(({ check }) => check as string)).toEqual(expect.arrayContaining(checks));
  });

  it("whose states do not follow from its tables is found", async () => {
    await under.editManifest((m) => (m.state = "OPEN"));
    expect(failedChecks(await reportOf(under.archive, worldRun))).toEqual(["run state"]);
    await under.editManifest((m) => (m.tables.fills!.state = "ABSENT"));
    expect(failedChecks(await reportOf(under.archive, worldRun))).toEqual(["fills state"]);
  });

  it("a table that is not proven leads to exit 4, not to damage", async () => {
    await under.editManifest((m) => {
      m.tables.fills = unproven(m.tables.fills!, "UNVERIFIED");
      m.tables.fills.attempt.holding!.certificate!.proof = "none";
      m.state = "UNVERIFIED";
    });
    const report = await reportOf(under.archive, worldRun);
    expect(report).toMatchObject({ damaged: false, unproven: true, exit: 4 });
    expect(failedChecks(report)).toEqual(["fills state", "run state"]);
  });
});
