// @module-tag slow
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { diffArchives } from "../../src/archive/diff/diff.ts";
import { firstDifference } from "../../src/archive/diff/diff-lines.ts";
import { archiveWorld, smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { ArraySource, type Manners, rowsAt } from "../fixtures/source/array-source.ts";

const tables = ["fills", "bars", "events"] as const;
let folder: string;
let pristine: Archive;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-diff-"));
  pristine = await make("pristine");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

type World = ReturnType<typeof smallWorld>;

async function make(
  name: string,
  {
    change,
    manners,
    settings,
  }: { change?: (world: World) => void; manners?: Manners; settings?: object } = {},
): Promise<Archive> {
  const world = smallWorld();
  change?.(world);
  const source = new ArraySource(worldRun, world, manners);
  return (
    await archiveWorld(join(folder, name), source, {
      tables,
      ...(settings === undefined ? {} : { settings }),
    })
  ).archive;
}

function lineWith(line: string, name: string, value: string): string {
  return JSON.stringify({ ...(JSON.parse(line) as object), [name]: value });
}

describe("comparing two archives", () => {
  it("finds archives equal whose segments are cut elsewhere", async () => {
    const other = await make("cut-elsewhere", { settings: { segmentBytes: 1 << 20, sliceRows: 1000 } });
    const [a, b] = await Promise.all([pristine.manifest(worldRun), other.manifest(worldRun)]);
    expect(a!.tables.fills!.proven!.segments.map(({ rows }) => rows)).not.toEqual(
      b!.tables.fills!.proven!.segments.map(({ rows }) => rows),
    );
    const diff = await diffArchives(pristine, other);
    expect(diff).toMatchObject({ equal: true, onlyInA: [], onlyInB: [] });
    expect(diff.runs[0]!.tables.map(({ table, rows }) => [table, rows])).toEqual(
      tables.map((table) => [table, { a: 25, b: 25 }]),
    );
  });

  it("notes another proof, and what one source could not know, without calling the archives different", async () => {
    const diff = await diffArchives(pristine, await make("literal", { manners: { literal: true } }));
    expect(diff.equal).toBe(true);
    expect(diff.runs[0]!.notes).toContain("storage version: 1 and unknown");
    expect(diff.runs[0]!.tables[0]!.notes).toContain("proof: counted and exhausted");
  });

  it("notes a schema fingerprint that only one side's gateway named its fields in", async () => {
    const diff = await diffArchives(pristine, await make("named", { manners: { hashes: "named" } }));
    expect(diff.equal).toBe(true);
    const notes = diff.runs[0]!.tables[0]!.notes;
    expect(notes).toContainEqual(expect.stringMatching(/^schema fingerprint: 1 and fields:run_id:string,/));
  });

  it("names the first line that differs, with both texts and its number", async () => {
    const other = await make("one-value", {
      change: (world) => {
        const rows = world.get("fills")!;
        rows[12] = { ...rows[12]!, line: lineWith(rows[12]!.line, "fee", "77.125") };
        rows[13] = { ...rows[13]!, line: lineWith(rows[13]!.line, "fee", "78.125") };
      },
    });
    const diff = await diffArchives(pristine, other);
    expect(diff.equal).toBe(false);
    const [fills, ...rest] = diff.runs[0]!.tables;
    expect(rest.map(({ equal }) => equal)).toEqual([true, true]);
    expect(fills).toMatchObject({ equal: false, firstDifference: { line: 13 } });
    expect(fills!.firstDifference!.b).toContain('"fee":"77.125"');
    expect(fills!.firstDifference!.a).not.toContain("77.125");
    expect(fills!.firstDifference!.a!.length).toBeLessThanOrEqual(302);
    expect(fills!.rowHash.a).not.toBe(fills!.rowHash.b);
  });

  it("tells a missing row and a repeated one from the counts, buckets and lines", async () => {
    const shorter = await make("shorter", { change: (world) => void world.get("bars")!.pop() });
    const diff = await diffArchives(pristine, shorter);
    const bars = diff.runs[0]!.tables.find(({ table }) => table === "bars")!;
    expect(bars.firstDifference).toMatchObject({ line: 25, b: null });
    expect(bars.differences).toEqual(
      expect.arrayContaining(["rows: 25 and 24", "certified rows: 25 and 24", "lines differ"]),
    );
  });

  it("finds lines that are printed otherwise different, and says that the rows are the same", async () => {
    const other = await make("printed", {
      change: (world) => {
        const rows = world.get("fills")!;
        rows[3] = { ...rows[3]!, line: rows[3]!.line.replace(",", ", ") };
      },
    });
    const fills = (await diffArchives(pristine, other)).runs[0]!.tables[0]!;
    expect(fills.equal).toBe(false);
    expect(fills.differences).toEqual([
      "lines differ, though the rows are the same: they are in another order or printed differently",
    ]);
  });

  it("compares rows that came unsorted by their sorted rows", async () => {
    const other = await make("unsorted", {
      change: (world) => {
        const rows = world.get("fills")!;
        rows.splice(5, 3, rows[7]!, rows[6]!, rows[5]!);
      },
    });
    const manifest = await other.manifest(worldRun);
    expect(manifest!.tables.fills!.proven!.segments.some(({ sorted }) => !sorted)).toBe(true);
    expect((await diffArchives(pristine, other)).runs[0]!.tables[0]).toMatchObject({ equal: true });
  });

  it("lists the runs that only one side holds, and compares only the runs asked for", async () => {
    const dir = join(folder, "two-runs");
    const second = { ...worldRun, runId: "2022-01-02" };
    await archiveWorld(dir, new ArraySource(worldRun, smallWorld()), { tables });
    const rows = new Map([["fills" as const, rowsAt(second, "fills", [5n])]]);
    const { archive } = await archiveWorld(dir, new ArraySource(second, rows), { tables });
    expect(await diffArchives(pristine, archive)).toMatchObject({
      equal: false,
      onlyInA: [],
      onlyInB: [second],
    });
    expect(await diffArchives(archive, pristine)).toMatchObject({
      equal: false,
      onlyInA: [second],
      onlyInB: [],
    });
    expect(await diffArchives(pristine, archive, { runs: [worldRun] })).toMatchObject({ equal: true });
    await expect(
      diffArchives(pristine, archive, { runs: [{ ...worldRun, runId: "x" }] }),
    ).rejects.toMatchObject({
      code: "not_archived",
    });
  });

  it("reads no damaged file as a difference, but throws archive_damaged with its name", async () => {
    const other = await make("damaged");
    const manifest = (await other.manifest(worldRun))!;
    const { file } = manifest.tables.events!.proven!.segments[0]!;
    await writeFile(join(other.layout.dataDir(worldRun), file), "x");
    await expect(diffArchives(pristine, other)).rejects.toMatchObject({
      code: "archive_damaged",
      place: { file: expect.stringContaining(file) },
    });
    const parquet = manifest.tables.fills!.proven!.parquet[0]!.file;
    await writeFile(join(other.layout.dataDir(worldRun), parquet), "x");
    await expect(diffArchives(await openArchive(other.dir), pristine)).rejects.toMatchObject({
      code: "archive_damaged",
    });
  });
});

describe("comparing texts in pieces of whole lines", () => {
  const lines = fc.array(
    fc.string({ maxLength: 3 }).map((text) => text.replaceAll("\n", "")),
    { maxLength: 12 },
  );

  async function* pieces(text: readonly string[], every: number): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < text.length; at += every) {
      yield Buffer.from(
        text
          .slice(at, at + every)
          .map((line) => `${line}\n`)
          .join(""),
      );
    }
  }

  it("gives the first line that differs, wherever the pieces are cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        lines,
        lines,
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 5 }),
        async (a, b, i, j) => {
          for (const other of [b, [...a], [...a, ...b], [...a.slice(0, 3), ...b]]) {
            const found = await firstDifference(pieces(a, i), pieces(other, j));
            let line = 0;
            while (line < a.length && line < other.length && a[line] === other[line]) line++;
            const same = line === a.length && line === other.length;
            expect(found).toEqual(
              same ? null : { line: line + 1, a: a[line] ?? null, b: other[line] ?? null },
            );
          }
        },
      ),
    );
  });
});
