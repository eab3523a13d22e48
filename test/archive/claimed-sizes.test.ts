import { createHash } from "node:crypto";
import { mkdir, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Manifest, Segment } from "../../src/archive/manifest/manifest.ts";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import { readSegment } from "../../src/archive/write/segment.ts";
import type { RowRequest } from "../../src/model/source.ts";
import { ArchiveUnderTest, failedChecks, reportOf, worldRun } from "../fixtures/archive/archived-world.ts";

let under: ArchiveUnderTest;
beforeAll(async () => {
  under = await ArchiveUnderTest.create(["fills"]);
});
afterAll(() => under[Symbol.asyncDispose]());
beforeEach(() => under.renew());

const huge = 2 ** 50;
const firstOf = (manifest: Manifest) => manifest.tables.fills!.proven!.segments[0]!;

function claim(claimed: Partial<Segment>): Promise<void> {
  return under.editManifest((manifest) => void Object.assign(firstOf(manifest), claimed));
}

function read(claimed: Partial<Segment>): Promise<Buffer> {
  const segment = { ...firstOf(under.manifest), ...claimed };
  return readSegment(under.archive.store, under.archive.layout.keyOf(under.dataFile(segment.file)), segment);
}

/** What anybody asks for in buffers meanwhile, in bytes: all of them, or the largest. */
async function bytesAsked(work: () => Promise<unknown>, which: "all" | "largest" = "all"): Promise<number> {
  const asked: number[] = [0];
  const spies = (["allocUnsafe", "allocUnsafeSlow", "alloc"] as const).map((name) => {
    const real = Buffer[name];
    return vi.spyOn(Buffer, name).mockImplementation((size: number) => {
      asked.push(size);
      return real(size);
    });
  });
  try {
    await work();
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return asked.reduce((sum, size) => (which === "all" ? sum + size : Math.max(sum, size)), 0);
}

describe("the size that a manifest claims for a segment", () => {
  it("sizes no buffer", async () => {
    for (const bytes of [10 ** 9, huge]) {
      for (const claimed of [{ bytes }, { storedBytes: bytes }, { bytes, storedBytes: bytes }]) {
        const asked = await bytesAsked(() =>
          expect(read(claimed)).rejects.toMatchObject({ code: "archive_damaged" }),
        );
        expect(asked).toBeLessThan(1 << 20);
      }
    }
  });

  it("is where decompression stops", async () => {
    const text = Buffer.alloc(32 << 20, "rows\n");
    const frame = zstdCompressSync(text);
    const { file } = firstOf(under.manifest);
    await writeFile(under.dataFile(file), frame);
    const sha256 = createHash("sha256").update(frame).digest("hex");
    const written = { sha256, storedBytes: frame.byteLength };
    expect((await read({ ...written, bytes: text.byteLength })).equals(text)).toBe(true);
    const asked = await bytesAsked(() =>
      expect(read({ ...written, bytes: 1000 })).rejects.toMatchObject({
        code: "archive_damaged",
        message: "a segment is damaged: its text does not have the committed size",
      }),
    );
    expect(asked).toBeLessThan(1 << 20);
  });

  it("may be that of an empty text", async () => {
    await expect(read({ bytes: 0 })).rejects.toMatchObject({ code: "archive_damaged" });
  });

  it("is held against the file before it is read", async () => {
    const { storedBytes } = firstOf(under.manifest);
    await expect(read({ storedBytes: storedBytes - 1 })).rejects.toMatchObject({ code: "archive_damaged" });
  });
});

describe("a file that is as large as its manifest says, and holds nothing", () => {
  const size = 160 * 2 ** 20;
  // a hole: it takes no room on the disk
  const zeros = createHash("sha256").update(Buffer.alloc(size)).digest("hex");
  const hollow = async (file: string) => {
    await writeFile(file, "");
    await truncate(file, size);
  };

  it("is no document", async () => {
    const { file } = under.manifest.documents.summary!;
    await hollow(under.dataFile(file));
    await under.editManifest((manifest) => {
      manifest.documents.summary = { file, storedBytes: size, sha256: zeros };
    });
    await using source = openArchiveSource(under.archive);
    const asked = await bytesAsked(() =>
      expect(source.document(worldRun, "summary")).rejects.toMatchObject({ code: "archive_damaged" }),
    );
    expect(asked).toBeLessThan(1 << 20);
  });

  it("is counted in pieces where it is one of rows set aside", async () => {
    const folder = under.archive.layout.quarantineDir(worldRun);
    await mkdir(folder, { recursive: true });
    await hollow(join(folder, "fills.g1.000099.quarantine.ndjson"));
    await under.editManifest((manifest) => {
      const { segments, quarantine } = manifest.tables.fills!.proven!;
      const { file: segment, from, to } = segments[0]!;
      const file = "fills.g1.000099.quarantine.ndjson";
      quarantine.push({ file, segment, rows: 0, storedBytes: size, sha256: zeros, from, to });
    });
    const asked = await bytesAsked(async () => {
      expect(failedChecks(await reportOf(under.archive, worldRun))).not.toContain("fills quarantine");
    }, "largest");
    expect(asked).toBeLessThan(size / 2);
  });
});

it("a frame that claims a large window is refused ahead of it", async () => {
  const text = Buffer.from("rows\n".repeat(100));
  // by RFC 8878: magic number, no size of the content, a window of 128 MiB, one last block as it stands
  const frame = Buffer.concat([Buffer.from("28b52ffd0088", "hex"), Buffer.alloc(3), text]);
  frame.writeUIntLE((text.byteLength << 3) | 1, 6, 3);
  expect(zstdDecompressSync(frame).equals(text)).toBe(true);
  const { file } = firstOf(under.manifest);
  await writeFile(under.dataFile(file), frame);
  const sha256 = createHash("sha256").update(frame).digest("hex");
  await expect(read({ sha256, storedBytes: frame.byteLength, bytes: text.byteLength })).rejects.toMatchObject(
    { message: "a segment is damaged: its zstd frame cannot be decompressed" },
  );
});

it.each(["rows", "bytes", "storedBytes", "longestLine"] as const)(
  "%s beyond all there is end a reader, and a deep verification, in bounded time",
  async (name) => {
    await claim({ [name]: huge });
    await using source = openArchiveSource(under.archive);
    const rows = async (more: Partial<RowRequest>) => {
      let bytes = 0;
      for await (const chunk of source.rows({ ...worldRun, table: "fills", ...more }))
        bytes += chunk.byteLength;
      return bytes;
    };
    for (const more of [{}, { limit: 2 ** 40 }, { from: BigInt(firstOf(under.manifest).from) + 1n }])
      await rows(more).catch((error: unknown) => expect(error).toMatchObject({ code: "archive_damaged" }));
    // a longer line may have been there once
    const failed = failedChecks(await reportOf(under.archive, worldRun, { deep: true }));
    expect(failed.length > 0).toBe(name !== "longestLine");
  },
);
