import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Layout } from "../../src/archive/layout.ts";
import { manifestPaths } from "../../src/archive/manifest/manifest-paths.ts";
import { FolderStore } from "../../src/archive/storage/folder-store.ts";

it("passes over no run whose manifest has a folder in its place", async () => {
  const dir = await mkdtemp(join(tmpdir(), "runvault-paths-"));
  try {
    const layout = new Layout(dir);
    const file = join(layout.runsDir, "alpha", "r-1.json");
    await mkdir(file, { recursive: true });
    expect(await manifestPaths(layout, new FolderStore(layout))).toEqual([file]);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});
