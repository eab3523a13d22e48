import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import { serve } from "../../src/serve/server.ts";
import { worldRun } from "../fixtures/archive/archived-world.ts";
import { treeOf } from "../fixtures/archive/folder-tree.ts";
import {
  type ArchiveFile,
  archiveFiles,
  commandsOf,
  HostileArchive,
  type HostilePlace,
  hostilePlaces,
  otherRun,
  type ReadingCommand,
} from "../fixtures/archive/hostile-place.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

/** No command may take longer, whatever stands in the place of a file. */
const mostMs = 10_000;

let hostile: HostileArchive;
beforeAll(async () => {
  hostile = await HostileArchive.create();
});
afterAll(() => hostile[Symbol.asyncDispose]());
beforeEach(() => hostile.renew());

/** The commands that have to do with a file, and so end with exit status 5 where it is none. The others do their work. */
const refusing: Record<ArchiveFile, readonly ReadingCommand[]> = {
  manifest: [
    "runs",
    "query",
    "files",
    "export",
    "verify",
    "diff",
    "rebuild",
    "archive",
    "archive --dry-run",
    "status",
  ],
  "archive.json": [
    "runs",
    "query",
    "files",
    "export",
    "verify",
    "diff",
    "rebuild",
    "archive",
    "archive --dry-run",
    "rm",
    "jobs",
    "status",
  ],
  "sources.json": ["verify", "archive", "archive --dry-run"],
  segment: ["verify", "diff", "rebuild"],
  Parquet: ["query", "files", "export", "verify", "diff"],
  document: ["verify"],
  quarantine: ["verify"],
  "linked Parquet": ["verify"],
  cache: ["verify"],
  lock: ["verify", "rebuild", "archive", "rm"],
  "lock's log": ["verify", "rebuild", "archive", "rm"],
  journal: ["verify", "rebuild", "archive"],
  "job record": ["verify", "rebuild"],
  "execution record": ["verify", "jobs", "status"],
};

const differently: Partial<
  Record<HostilePlace, Partial<Record<ArchiveFile, Partial<Record<ReadingCommand, number>>>>>
> = {
  // of a folder nobody knows what it holds: nothing is put in its place
  folder: { "linked Parquet": { rebuild: 5, archive: 5 }, manifest: { rm: 5 } },
  // what is a file, though not ours, is read, or replaced, as damage is
  "empty file": {
    "sources.json": { verify: 0 },
    "linked Parquet": { verify: 0 },
    cache: { verify: 0 },
    lock: { verify: 0 },
    "lock's log": { verify: 0, rebuild: 0, archive: 0, rm: 0 },
    journal: { verify: 0, rebuild: 0, archive: 0 },
    "job record": { verify: 0, rebuild: 0 },
    "execution record": { verify: 0 },
  },
  "larger file": {
    "sources.json": { verify: 0 },
    "linked Parquet": { verify: 0 },
    cache: { verify: 0 },
    lock: { verify: 0, rebuild: 0, archive: 0, rm: 0 },
    "lock's log": { verify: 0, rebuild: 0, archive: 0, rm: 0 },
    journal: { verify: 0 },
    "job record": { verify: 0 },
    // a first line is there, and none that ends it: it died, and so nothing ever succeeded
    "execution record": { verify: 0, jobs: 0, status: 4 },
  },
};

async function expectBounded(place: HostilePlace, kind: ArchiveFile, command: ReadingCommand): Promise<void> {
  await hostile.put(place, kind);
  const before = await treeOf(hostile.outside);
  const done = await Promise.race([runInside(commandsOf(hostile)[command]), pause(mostMs, null)]);
  if (done === null) {
    await letGo(kind);
    throw new Error(`${command} waits for ever`);
  }
  const usual = refusing[kind].includes(command) ? 5 : 0;
  const status = differently[place]?.[kind]?.[command] ?? usual;
  expect(done, `${place}, ${command}`).toMatchObject({ status });
  expect(await treeOf(hostile.outside)).toEqual(before);
}

/** Lets go whoever waits in a FIFO, so that a test that fails ends. */
async function letGo(kind: ArchiveFile): Promise<void> {
  const file = await open(hostile.pathOf(kind), constants.O_RDWR | constants.O_NONBLOCK).catch(() => null);
  await file?.close();
}

const every = Object.keys(refusing) as ArchiveFile[];
const commands = [...new Set([...refusing["archive.json"], "rm"])] as ReadingCommand[];

describe.each(every)("a FIFO in the place of %s", (kind) => {
  it.each(commands)("keeps no %s waiting", async (command) => {
    await expectBounded("FIFO", kind, command);
  });
});

const others = hostilePlaces.filter((place) => place !== "FIFO");
// two commands for each pair, others for the next: all of them meet all kinds of files, and all kinds of places
const pairs = others.flatMap((place, i) =>
  archiveFiles.map((kind, j) => {
    const first = (i * 3 + j) % commands.length;
    return [place, kind, [commands[first]!, commands[(first + 5) % commands.length]!]] as const;
  }),
);

describe("in the place of a file of the archive", () => {
  it.each(pairs)("a %s is never read as %s", async (place, kind, chosen) => {
    for (const command of chosen) {
      await hostile.renew();
      await expectBounded(place, kind, command);
    }
  });
});

it("a manifest that is a FIFO costs a server that run alone, however often it is asked for", async () => {
  await hostile.put("FIFO", "manifest");
  await using source = openArchiveSource(hostile.archive);
  const server = await serve({ source, host: "127.0.0.1", port: 0 });
  try {
    const ask = async ({ instanceId, runId }: typeof worldRun) => {
      const url = `${server.url}/history/fills?instance=${instanceId}&run_id=${runId}`;
      const answer = await fetch(url, { signal: AbortSignal.timeout(mostMs) });
      await answer.arrayBuffer();
      return answer.status;
    };
    // as many as there are threads to open files, and one more
    const asked = await Promise.all(Array.from({ length: 5 }, () => ask(worldRun)));
    expect(asked).toEqual(asked.map(() => 502));
    expect(await ask(otherRun)).toBe(200);
  } finally {
    await letGo("manifest");
    await server.close();
  }
});
