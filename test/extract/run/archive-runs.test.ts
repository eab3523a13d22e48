import { expect, test } from "vitest";
import { lockHolder } from "../../../src/archive/lock.ts";
import { archiveRuns } from "../../../src/library/extract.ts";
import type { RunRef } from "../../../src/model/source.ts";
import { JobWorld } from "../../fixtures/pipeline/job-world.ts";

test("whoever leaves after the first run waits for the one that is under way, and leaves no lock", async () => {
  await using world = await JobWorld.open(1, 3);
  const begun: RunRef[] = [];
  const runs = archiveRuns({
    gateway: { baseUrl: world.url, transport: "rest" },
    archive: world.dir,
    tables: ["fills"],
    watcher: { run: (run) => void begun.push(run) },
  });
  for await (const run of runs) {
    expect(run.state).toBe("COMPLETE");
    break;
  }
  const archive = await world.archive();
  const { layout } = archive;
  for (const run of begun) expect(await lockHolder(layout, layout.lockFile(run))).toBeNull();
  const states = await Promise.all(begun.map(async (run) => (await archive.manifest(run))?.state));
  expect(begun).toHaveLength(2);
  expect(states).toEqual(["COMPLETE", "COMPLETE"]);
});
