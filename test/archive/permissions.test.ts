// @module-tag slow
import { chmod, mkdir, mkdtemp, readdir, rm, stat, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { rebuildRun } from "../../src/extract/rebuild/rebuild-run.ts";
import { archiveWorld, smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

let folder: string;
let dir: string;
let umask: number;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-permissions-"));
  dir = join(folder, "archive");
  umask = process.umask();
});
afterEach(async () => {
  process.umask(umask);
  await rm(folder, { recursive: true, force: true });
});

const bitsOf = async (path: string) => ((await stat(path)).mode & 0o7777).toString(8);

/** What there is below the root: by kind of thing, the permissions seen, with an example of each. */
async function bitsBelow(root: string): Promise<{ folders: string[]; files: string[] }> {
  const seen = { folders: new Map<string, string>(), files: new Map<string, string>() };
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const kind = entry.isDirectory() ? "folders" : "files";
    seen[kind].set(await bitsOf(path), relative(root, path));
  }
  return { folders: [...seen.folders.keys()], files: [...seen.files.keys()] };
}

/** Everything that writes in an archive: a job with rows set aside, a reader, a rebuild. */
async function work(): Promise<void> {
  const rows = smallWorld();
  const bars = rows.get("bars")!;
  bars[4] = { ...bars[4]!, line: bars[4]!.line.replace(/"close":"[^"]*"/, '"close":7') };
  const { archive } = await archiveWorld(dir, new ArraySource(worldRun, rows), { tables: ["fills", "bars"] });
  expect(await readdir(dir)).toContain("quarantine");
  const { signal } = new AbortController();
  await rebuildRun({
    archive,
    run: worldRun,
    upTo: 1,
    clock: () => 0n,
    signal,
    tool: "test",
    duckdb: sharedDuckDB,
  });
  // what was left alone for a while is remembered, in cache/
  const data = join(dir, "data/alpha/2022-01-01");
  for (const file of await readdir(data)) await utimes(join(data, file), 1e9, 1e9);
  await pause(150);
  expect((await runInside(["query", "SELECT count(*) FROM fills", "--archive", dir])).status).toBe(0);
  expect((await runInside(["maintain", "rebuild", "--archive", dir])).status).toBe(0);
  expect(await readdir(dir)).toContain("cache");
}

interface Given {
  readonly root: number;
  readonly folders: readonly string[];
  readonly files: readonly string[];
}

/** Bits of a folder that somebody made, and those of what is made in it. */
const given = {
  readable: { root: 0o755, folders: ["755"], files: ["644"] },
  group: { root: 0o750, folders: ["750"], files: ["640"] },
  owner: { root: 0o700, folders: ["700"], files: ["600"] },
  // whoever may write in it together
  together: { root: 0o2770, folders: ["2770"], files: ["660"] },
  "group's": { root: 0o2750, folders: ["2750"], files: ["640"] },
} as const satisfies Record<string, Given>;

// what a umask would take away, and what it would leave
describe.each([
  { mask: 0o000, roots: [given.owner, given.group] },
  { mask: 0o022, roots: [given.together, given["group's"]] },
  { mask: 0o077, roots: [given.readable] },
])("under umask $mask", ({ mask, roots }) => {
  it("a new archive is its owner's alone", async () => {
    process.umask(mask);
    await work();
    expect(await bitsOf(dir)).toBe("700");
    expect(await bitsBelow(dir)).toEqual({ folders: ["700"], files: ["600"] });
  });

  it.each<Given>(roots)(
    "what is made in a folder of bits $root follows them",
    async ({ root, ...expected }) => {
      await mkdir(dir);
      await chmod(dir, root);
      process.umask(mask);
      await work();
      expect(await bitsOf(dir)).toBe(root.toString(8));
      expect(await bitsBelow(dir)).toEqual(expected);
    },
  );
});

it("what is made later follows the bits that the root has by then", async () => {
  await archiveWorld(dir, new ArraySource(worldRun, smallWorld()), { tables: ["fills"] });
  await chmod(dir, 0o750);
  const next = { instanceId: "beta", runId: "2022-01-02" };
  await archiveWorld(dir, new ArraySource(next, smallWorld(25, next)), { tables: ["fills"] });
  expect(await bitsOf(join(dir, "runs/beta/2022-01-02.json"))).toBe("640");
  expect(await bitsOf(join(dir, "data/beta"))).toBe("750");
  expect(await bitsOf(join(dir, "runs/alpha/2022-01-01.json"))).toBe("600");
});

it.each([
  [0o750, "700"],
  [0o770, "770"],
])("in an archive of bits %o, what is spilled by a job is in a folder of bits %s", async (root, expected) => {
  await mkdir(dir);
  await chmod(dir, root);
  let seen = "";
  const job = archiveWorld(dir, new ArraySource(worldRun, smallWorld()), {
    tables: ["fills"],
    step: (name) => {
      if (name === "planned") throw new Error("stopped");
    },
  });
  await expect(job).rejects.toThrow("stopped");
  seen = await bitsOf(join(dir, "staging/alpha/2022-01-01"));
  expect(seen).toBe(expected);
});
