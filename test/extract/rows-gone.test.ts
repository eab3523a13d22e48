// @module-tag slow
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { RunvaultError } from "../../src/model/error.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import { parquetLines } from "../fixtures/archive/archived-lines.ts";
import { at, hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { type ArrayRow, ArraySource, type Manners } from "../fixtures/source/array-source.ts";

const all = world({ fills: hours(180) }).get("fills")!;
const growing = { final: false } as const;
/** From the horizon of the first sixty. */
const unknown = /^what came and went in \[2022-01-03T11.*\) is not known$/;
const failure = () => new RunvaultError("server_error", "no luck today");

/** A source with these fills, and other tables where they are given. */
function giving(fills: readonly ArrayRow[], manners: Manners = {}, more: [TableName, ArrayRow[]][] = []) {
  return new ArraySource(run, new Map<TableName, ArrayRow[]>([["fills", [...fills]], ...more]), manners);
}

async function fillsOf(tables: TableWorld, source: ArraySource) {
  return (await tables.archiveRun(source)).manifest.tables.fills!;
}

/** Readers see exactly these rows. */
async function expectShown(tables: TableWorld, rows: readonly ArrayRow[]) {
  const { parquet } = (await tables.archive.manifest(run))!.tables.fills!.proven!;
  expect(parquet.reduce((sum, { rows }) => sum + rows, 0)).toBe(rows.length);
  await expect(parquetLines(tables.archive, run, "fills")).resolves.toEqual(rows.map(({ line }) => line));
}

describe.each([
  ["goes on", growing],
  ["has ended", {}],
])("of a run that %s, rows that a gateway no longer keeps", (_, manners) => {
  it("were never proven: they stay beside what is proven, until that is accepted", async () => {
    await using tables = await TableWorld.create();
    await tables.archiveRun(giving(all.slice(0, 60), growing));
    const refuses: Manners["refuses"] = ({ from, limit }) =>
      from !== undefined && from > at(90) && limit !== 1 ? failure() : undefined;
    const cut = await fillsOf(tables, giving(all.slice(0, 120), { ...growing, refuses }));
    const held = cut.attempt.holding!.certificate!.rows;
    expect(held).toBeGreaterThan(60);
    const source = giving(all.slice(120), manners);
    expect(await fillsOf(tables, source)).toMatchObject({
      state: manners === growing ? "OPEN" : "COMPLETE",
      proven: {
        certificate: { rows: 120, restsOn: expect.arrayContaining([expect.stringMatching(unknown)]) },
      },
      attempt: { outcome: "ok", holding: { certificate: { rows: held - 60, proof: "none" } } },
    });
    await expectShown(tables, [...all.slice(0, 60), ...all.slice(120)]);
    source.storageVersion = "2";
    source.tables.set("fills", repriced(all.slice(120)));
    const accepted = await tables.archiveRun(source, { settings: { acceptShrink: true } });
    expect(accepted.manifest.tables.fills!.attempt.holding).toBe(null);
  });

  it("were proven, and dropped by an attempt that failed to bring them again: they stay, and what is unknown is told", async () => {
    await using tables = await TableWorld.create();
    const first = all.slice(0, 59).toSpliced(1, 1);
    await tables.archiveRun(giving(first, growing));
    const refuses: Manners["refuses"] = ({ from, limit }) =>
      from !== undefined && from <= at(3) && limit !== 1 ? failure() : undefined;
    await tables.archiveRun(giving(all.slice(0, 60), { ...growing, refuses }));
    expect(await fillsOf(tables, giving(all.slice(30, 70), manners))).toMatchObject({
      attempt: {
        outcome: "ok",
        notes: expect.arrayContaining([expect.stringMatching(/^what came .* is not known$/)]),
      },
    });
    await expectShown(tables, [...first, ...all.slice(59, 70)]);
  });

  it("may have come and gone since the horizon: the certificate says so, for good", async () => {
    await using tables = await TableWorld.create();
    await tables.archiveRun(giving(all.slice(0, 60), growing));
    const source = giving(all.slice(120), manners);
    for (const version of ["1", "2"]) {
      source.storageVersion = version;
      const { proven } = await fillsOf(tables, source);
      expect(proven!.certificate!.restsOn.filter((ground) => ground.startsWith("what came"))).toEqual([
        expect.stringMatching(unknown),
      ]);
    }
    await expectShown(tables, [...all.slice(0, 60), ...all.slice(120)]);
  });
});

it.each([{}, { literal: true }])(
  "a segment that is lost together with its rows at the gateway takes nothing from readers (%j)",
  async (manners) => {
    await using tables = await TableWorld.create();
    const { manifest } = await tables.archiveRun(giving(all.slice(0, 60), manners));
    const lost = manifest.tables.fills!.proven!.segments[1]!;
    await rm(join(tables.archive.layout.dataDir(run), lost.file));
    expect(await fillsOf(tables, giving(all.slice(30, 60), manners))).toMatchObject({
      state: "UNVERIFIED",
      attempt: { error: { message: expect.stringContaining("no longer complete here") } },
    });
    await expectShown(tables, all.slice(0, 60));
  },
);

it("a part of a window stays proven in an attempt that fails: no row in it goes without a word", async () => {
  await using tables = await TableWorld.create();
  const source = giving(all.slice(0, 60), growing);
  const { segments } = (await fillsOf(tables, source)).proven!;
  const parted = segments.find(({ from, rows }) => rows > 4 && BigInt(from) > at(10))!;
  const inside = all.flatMap(({ ts }, i) => (ts >= BigInt(parted.from) && ts < BigInt(parted.to) ? [i] : []));
  const kept = all.slice(inside[1]!, 65);
  source.tables.set("fills", kept);
  source.manners = { ...growing, refuses: failure };
  expect((await fillsOf(tables, source)).state).toBe("INCOMPLETE");
  source.manners = growing;
  source.tables.set(
    "fills",
    kept.filter((row) => row !== all[inside[3]!]),
  );
  expect(await fillsOf(tables, source)).toMatchObject({
    state: "UNVERIFIED",
    attempt: { error: { code: "shrunk" } },
  });
  await expectShown(tables, all.slice(0, 60));
});

describe("a table of which the gateway keeps no row any more", () => {
  it.each([{}, { literal: true }])(
    "is not taken for whole where more of it was to come (%j)",
    async (manners) => {
      await using tables = await TableWorld.create();
      const orders: [TableName, ArrayRow[]][] = [["orders", world({ orders: hours(60) }).get("orders")!]];
      await tables.archiveRun(giving(all.slice(0, 30), { ...manners, ...growing }, orders));
      expect(await fillsOf(tables, giving([], manners, orders))).toMatchObject({
        state: "UNVERIFIED",
        proven: { state: "OPEN" },
        attempt: { error: { code: "shrunk" } },
      });
      await expectShown(tables, all.slice(0, 30));
    },
  );

  it("is not taken for empty where rows of it came", async () => {
    await using tables = await TableWorld.create();
    const rows = world({ fills: hours(60), orders: hours(60) });
    let asked = 0;
    const source = new ArraySource(run, rows, {
      refuses: ({ table }) => (table === "orders" && ++asked > 2 ? failure() : undefined),
    });
    expect((await tables.archiveRun(source)).manifest.tables.orders!.state).toBe("INCOMPLETE");
    const empty = new ArraySource(run, world({ fills: [], orders: [] }));
    empty.storageVersion = "2";
    const { manifest } = await tables.archiveRun(empty);
    expect([manifest.tables.fills!.state, manifest.tables.orders!.state]).toEqual(["COMPLETE", "UNVERIFIED"]);
  });

  it("has its Parquet made anew where that is lost, and is damaged where a segment is", async () => {
    await using tables = await TableWorld.create();
    const { proven } = await fillsOf(tables, giving(all.slice(0, 60)));
    const data = tables.archive.layout.dataDir(run);
    await rm(join(data, proven!.parquet[0]!.file));
    expect((await fillsOf(tables, giving([]))).state).toBe("COMPLETE");
    await expectShown(tables, all.slice(0, 60));
    await rm(join(data, proven!.segments[0]!.file));
    expect(await fillsOf(tables, giving([]))).toMatchObject({
      state: "UNVERIFIED",
      attempt: { error: { message: expect.stringContaining("the archive lost 1 proven segment") } },
    });
    await expectShown(tables, all.slice(0, 60));
  });
});

it("rows before the beginning do not make up for as many that are gone there, though counts are the same", async () => {
  await using tables = await TableWorld.create();
  const source = giving(all.slice(10, 60));
  source.storageVersion = undefined;
  await tables.archiveRun(source);
  source.tables.set("fills", all.slice(15, 65));
  expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
  await expectShown(tables, all.slice(10, 65));
});

it("work of a finished run that went on again is not gone on with", async () => {
  await using tables = await TableWorld.create();
  const unversioned = (rows: readonly ArrayRow[], manners: Manners) => {
    const source = giving(rows, manners);
    source.storageVersion = undefined;
    return source;
  };
  await tables.archiveUntil(unversioned(all.slice(0, 30), {}), "segment-journalled", 1);
  await tables.archiveUntil(unversioned(all.slice(0, 30), growing), "segment-journalled", 2);
  const changed = repriced(all.slice(0, 60));
  await tables.archiveRun(unversioned(changed, {}));
  await expectShown(tables, changed);
});

it("rows that a gateway dropped from the beginning stay where it is accepted that others are gone", async () => {
  await using tables = await TableWorld.create();
  await tables.archiveRun(giving(all.slice(0, 60)));
  const left = all.slice(30, 60).toSpliced(10, 1);
  const source = giving(left);
  source.storageVersion = "2";
  expect((await fillsOf(tables, source)).attempt.error!.code).toBe("shrunk");
  const { manifest } = await tables.archiveRun(source, { settings: { acceptShrink: true } });
  expect(manifest.state).toBe("COMPLETE");
  await expectShown(tables, [...all.slice(0, 30), ...left]);
});
