import { mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { Layout } from "../../src/archive/layout.ts";
import {
  archiveWorld,
  failedChecks,
  smallWorld,
  verifyAll,
  worldRun,
} from "../fixtures/archive/archived-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

let dir: string;
let layout: Layout;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "runvault-interrupted-"));
  layout = new Layout(dir);
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** Archives the small world's fills, and gives the windows that were asked for; ends as by a kill at the nth journalled segment. */
async function asked(killedAt = 0): Promise<string[]> {
  const source = new ArraySource(worldRun, smallWorld(100));
  let left = killedAt;
  const step = (name: string) => {
    if (name === "segment-journalled" && --left === 0) throw new Error("killed");
  };
  const job = archiveWorld(dir, source, {
    tables: ["fills"],
    step,
    settings: { segmentBytes: 100_000, sliceRows: 20, concurrency: 1 },
  });
  if (killedAt > 0) await expect(job).rejects.toThrow("killed");
  else await job;
  return source.asked.flatMap(({ limit, from, to }) => (limit === undefined ? [`${from} ${to}`] : []));
}

async function expectWhole(): Promise<void> {
  expect((await verifyAll(await openArchive(dir))).map(failedChecks)).toEqual([[]]);
}

test("a journal whose last line a kill tore goes on behind its whole lines, through a second kill", async () => {
  const first = await asked(2);
  const journal = layout.journalFile(worldRun);
  await truncate(journal, (await stat(journal)).size - 7);
  const second = await asked(2);
  const third = await asked();
  // the window of the torn line alone was asked for twice
  expect(second).toContain(first[1]);
  expect(third.filter((window) => [...first, ...second].includes(window))).toEqual([]);
  await expectWhole();
});

test("a journalled file that is not what the journal says does not count: its window alone is fetched again", async () => {
  const first = await asked(3);
  const pending = layout.pendingDir(worldRun);
  const [name] = (await readdir(pending)).filter((file) => file.endsWith(".zst")).sort();
  const bytes = await readFile(join(pending, name!));
  bytes[bytes.length - 1]! ^= 1;
  await writeFile(join(pending, name!), bytes);
  const second = await asked().catch((error: unknown) => [String(error)]);
  expect(second.filter((window) => first.includes(window))).toEqual([first[0]]);
  await expectWhole();
});
