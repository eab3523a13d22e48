import { chmod } from "node:fs/promises";
import { expect, test } from "vitest";
import { ArchiveUnderTest, worldRun } from "../fixtures/archive/archived-world.ts";
import { start } from "../fixtures/command/command-process.ts";
import { requires, unprivilegedUser } from "../fixtures/command/requirement.ts";

test.skipIf(!requires("unprivileged"))(
  "a run whose manifest may not be read is there as soon as it may, without a restart",
  async () => {
    await using made = await ArchiveUnderTest.create(["fills"]);
    await made.renew();
    await made.openToAll();
    const manifest = made.archive.layout.manifestFile(worldRun);
    await chmod(manifest, 0o000);
    const { child, finished, firstLine } = start(
      ["serve", "--archive", made.archive.dir],
      {},
      [],
      unprivilegedUser,
    );
    try {
      const url = await firstLine();
      const listed = async () => {
        const answer = await fetch(`${url}/history/instances`);
        return (await answer.json()) as { instances: unknown[] };
      };
      expect((await listed()).instances).toEqual([]);
      expect((await listed()).instances).toEqual([]);
      expect((await fetch(`${url}/doctor`)).status).toBe(502);
      await chmod(manifest, 0o644);
      expect((await listed()).instances).toMatchObject([{ instance_id: worldRun.instanceId }]);
      expect((await fetch(`${url}/doctor`)).status).toBe(200);
    } finally {
      child.kill("SIGTERM");
    }
    const { stderr } = await finished;
    // the owner hears of it once, however often it is tried
    expect(stderr.split("storage_forbidden")).toHaveLength(2);
  },
);
