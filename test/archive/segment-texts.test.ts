import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Layout } from "../../src/archive/layout.ts";
import type { Segment } from "../../src/archive/manifest/manifest.ts";
import { type AheadBudget, readAhead } from "../../src/archive/read/read-ahead.ts";
import { SegmentCache } from "../../src/archive/read/segment-cache.ts";
import { FolderStore } from "../../src/archive/storage/folder-store.ts";
import { packSegment } from "../../src/archive/write/segment.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "segment-texts-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** A stored segment of a thousand bytes of text. */
async function stored(
  name: string,
): Promise<{ file: string; segment: Segment; remove: () => Promise<void> }> {
  const text = Buffer.alloc(1000, `${name}\n`);
  const { frame, sha256 } = await packSegment(text);
  const file = join(folder, name);
  await writeFile(file, frame);
  const window = { bucket: "all", from: "0", to: "1", rows: 1, longestLine: 1, sorted: true };
  const segment = { ...window, file: name, bytes: 1000, storedBytes: frame.byteLength, sha256 };
  return { file: name, segment, remove: () => rm(file) };
}

test("a text is read once for all who want it, and kept until newer ones need the room", async () => {
  const texts = new SegmentCache(new FolderStore(new Layout(folder)), 2500);
  const [a, b, c] = [await stored("a"), await stored("b"), await stored("c")];
  const read = ({ file, segment }: typeof a) => texts.read(file, segment);
  const [one, other] = await Promise.all([read(a), read(a)]);
  expect(one).toBe(other);
  const second = await read(b);
  for (const { remove } of [a, b]) await remove();
  expect([await read(b), await read(a)]).toEqual([second, one]);
  // b is the one that was wanted least lately
  await read(c);
  expect(await read(a)).toBe(one);
  await expect(read(b)).rejects.toMatchObject({ code: "archive_damaged" });
});

test("a text that could not be read is read again by the next who wants it", async () => {
  const texts = new SegmentCache(new FolderStore(new Layout(folder)), 10_000);
  const { file, segment, remove } = await stored("d");
  await remove();
  await expect(texts.read(file, segment)).rejects.toMatchObject({ code: "archive_damaged" });
  await stored("d");
  expect((await texts.read(file, segment)).byteLength).toBe(1000);
});

test("readers share what may be read ahead, and give it back, also when they leave early", async () => {
  const budget: AheadBudget = { left: 3 };
  const asked: string[] = [];
  const reader = (name: string) =>
    readAhead(
      [1, 2, 3, 4, 5],
      () => 1,
      budget,
      async (item) => asked.push(`${name}${item}`),
    );
  const first = reader("a");
  await first.next();
  expect([asked, budget.left]).toEqual([["a1", "a2", "a3", "a4"], 0]);
  const second = reader("b");
  await second.next();
  // nothing is left for it but what it waits for
  expect(asked.slice(4)).toEqual(["b1"]);
  await first.return(undefined);
  expect(budget.left).toBe(3);
  await second.next();
  await second.next();
  expect(asked.slice(4)).toEqual(["b1", "b2", "b3", "b4", "b5"]);
  for await (const _ of second);
  expect(budget.left).toBe(3);
});
