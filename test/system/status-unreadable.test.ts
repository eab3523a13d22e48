import { chmod, mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { ArchiveUnderTest, worldRun } from "../fixtures/archive/archived-world.ts";
import { start } from "../fixtures/command/command-process.ts";
import { requires, unprivilegedUser } from "../fixtures/command/requirement.ts";

test.skipIf(!requires("unprivileged"))(
  "status says which folder it cannot read, and counts the rest",
  async () => {
    await using made = await ArchiveUnderTest.create(["fills"]);
    await made.renew();
    const own = dirname(made.archive.layout.cacheFile(worldRun));
    const other = dirname(made.archive.layout.cacheFile({ ...worldRun, instanceId: "beta" }));
    for (const [folder, bytes] of [
      [own, 3],
      [other, 5],
    ] as const) {
      await mkdir(folder, { recursive: true });
      await writeFile(`${folder}/more.json`, Buffer.alloc(bytes));
    }
    await made.openToAll();
    await chmod(other, 0o000);
    const { finished } = start(["status", "--json", "--archive", made.archive.dir], {}, [], unprivilegedUser);
    const { status, stdout, stderr } = await finished;
    expect(status).toBe(7);
    expect(JSON.parse(stderr)).toMatchObject({
      error: { code: "storage_forbidden", place: { file: other } },
    });
    const { contents, runs } = JSON.parse(stdout);
    expect(runs.total).toBe(1);
    expect(contents.bytes.cache).toBeGreaterThanOrEqual(3);
  },
);
