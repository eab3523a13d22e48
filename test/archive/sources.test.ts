import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { joinAddress, knownSource, readSources, rememberSource } from "../../src/archive/sources.ts";

let folder: string;
let archive: Archive;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-sources-"));
  archive = await openArchive(join(folder, "archive"), { create: true });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const written = { addresses: ["http://a/"], routes: ["fills"], empty: {}, finishedStatus: ["DONE"] };
const write = (source: object) =>
  writeFile(archive.layout.sourcesFile, JSON.stringify({ format: 1, sources: [source] }));

test("what was written before largest answers were kept is read, and added to", async () => {
  await write(written);
  expect(await readSources(archive)).toEqual([{ ...written, largest: { rows: 0, bytes: 0 } }]);
  const largest = { rows: 12, bytes: 3400 };
  await rememberSource(archive, "http://a/", (known) => ({ ...known, largest }));
  expect(await knownSource(archive, "http://a/")).toEqual({ ...written, largest });
});

test("of two addresses that are one source the larger answers are known", async () => {
  await write({ ...written, largest: { rows: 12, bytes: 3400 } });
  await rememberSource(archive, "http://b/", (known) => ({
    ...known,
    largest: { rows: 40, bytes: 900 },
  }));
  await joinAddress(archive, "http://a/", "http://b/");
  expect(await readSources(archive)).toMatchObject([
    { addresses: ["http://a/", "http://b/"], largest: { rows: 40, bytes: 3400 } },
  ]);
});

test.each([{ largest: { rows: -1, bytes: 0 } }, { largest: { rows: 1 } }, { smallest: 1 }])(
  "%j in it is damage",
  async (odd) => {
    await write({ ...written, ...odd });
    await expect(readSources(archive)).rejects.toMatchObject({ code: "archive_damaged" });
  },
);
