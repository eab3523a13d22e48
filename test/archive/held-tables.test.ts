import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { HeldTables } from "../../src/archive/write/held-tables.ts";
import { RunJournal } from "../../src/archive/write/run-journal.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-held-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test("journalled parts of one unsorted answer count together, and not at all once one of them is altered", async () => {
  const { layout, store } = await openArchive(join(folder, "archive"), { create: true });
  const run = { instanceId: "alpha", runId: "r-1" };
  const exactTypes = () => ({});
  const work = { layout, store, run, committed: null, storageVersion: null, final: false, exactTypes };
  const text = Buffer.from("{}\n");
  const draft = { bucket: "all", from: "0", to: "9", rows: 1, bytes: 3, longestLine: 2, sorted: false };
  const written: string[] = [];
  {
    await using journal = await RunJournal.open(work, () => {});
    const parts = [
      await journal.writeSegment("fills", draft, text),
      await journal.writeSegment("fills", draft, text),
    ];
    await journal.addSegments("fills", parts);
    written.push(...parts.map(({ file }) => file));
  }
  const held = async () => (await HeldTables.read(work)).held.of("fills").segments.map(({ file }) => file);
  expect(await held()).toEqual(written);
  await writeFile(join(layout.pendingDir(run), written[1]!), "altered");
  expect(await held()).toEqual([]);
});
