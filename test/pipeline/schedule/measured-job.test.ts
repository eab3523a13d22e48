import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { jobHistory } from "../../../src/pipeline/record/job-history.ts";
import { measuredJob } from "../../../src/pipeline/schedule/measured-job.ts";
import { JobWorld } from "../../fixtures/pipeline/job-world.ts";

test("of a record that was removed meanwhile the figures are those of its end", async () => {
  await using world = await JobWorld.open(1, 1);
  await world.execute(await world.write());
  const { layout } = await world.archive();
  const history = await jobHistory(layout, "nightly", () => {});
  const { runs } = (await measuredJob(history))!;
  expect(runs).toHaveLength(1);
  await rm(join(world.dir, history.lastEnded!.file));
  expect(await measuredJob(history)).toMatchObject({
    result: { exit: 0, rows: 3 },
    runs: [],
    notifiersFailed: 0,
  });
});
