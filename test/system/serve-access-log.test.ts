import { mkdtemp, readFile, rename, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ArchiveUnderTest, worldRun } from "../fixtures/archive/archived-world.ts";
import { start } from "../fixtures/command/command-process.ts";
import { requires } from "../fixtures/command/requirement.ts";

let made: ArchiveUnderTest;
let folder: string;
beforeAll(async () => {
  made = await ArchiveUnderTest.create(["fills"]);
  await made.renew();
  folder = await mkdtemp(join(tmpdir(), "runvault-access-log-"));
});
afterAll(async () => {
  await made[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

test.skipIf(!requires("full-device"))(
  "a full disk under the access log is told of and harms no answer, and the lines come when there is room",
  async () => {
    const file = join(folder, "log");
    await symlink("/dev/full", file);
    const args = ["serve", "--json", "--archive", made.archive.dir, "--access-log", file];
    const { child, finished, seen, firstLine } = start(args);
    try {
      const { url } = JSON.parse(await firstLine()) as { url: string };
      const { instanceId, runId } = worldRun;
      const rows = `/history/fills?instance=${instanceId}&run_id=${runId}`;
      const ask = async (path: string) => (await fetch(`${url}${path}`)).status;
      expect(await ask("/health")).toBe(200);
      await seen("ENOSPC");
      for (const path of ["/health", rows, "/history/instances"]) expect(await ask(path)).toBe(200);
      await symlink(join(folder, "roomy"), join(folder, "new"));
      await rename(join(folder, "new"), file);
      const lines = async () => (await readFile(join(folder, "roomy"), "utf8").catch(() => "")).split("\n");
      await expect.poll(async () => (await lines()).length, { timeout: 50_000 }).toBe(5);
      const paths = (await lines()).slice(0, -1).map((line) => (JSON.parse(line) as { path: string }).path);
      expect(paths).toEqual(
        ["/health", "/health", "/history/fills", "/history/instances"].map((path) => `/api/v1${path}`),
      );
      child.kill("SIGTERM");
      const { status, stderr } = await finished;
      expect([status, stderr.match(/ENOSPC/g)]).toEqual([0, ["ENOSPC"]]);
      expect(stderr).not.toContain("lost");
    } finally {
      child.kill("SIGKILL");
      await finished;
    }
  },
);
