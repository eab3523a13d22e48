import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readJobFiles } from "../../../src/pipeline/file/job-files.ts";
import { printUnits } from "../../../src/pipeline/units/print-units.ts";
import { unitKinds } from "../../../src/pipeline/units/unit-kind.ts";
import { unitPlan } from "../../../src/pipeline/units/unit-plan.ts";

test.each(unitKinds)("a cron expression of several lines is one line for %s", async (kind) => {
  const file = join(await mkdtemp(join(tmpdir(), "units-")), "nightly.yaml");
  const schedule = { cron: "15 2\n* * *", timezone: "UTC" };
  const gateway = { url: "http://127.0.0.1:1" };
  await writeFile(
    file,
    JSON.stringify({ version: 1, name: "nightly", gateway, archive: "archive", runs: {}, schedule }),
  );
  const [read] = (await readJobFiles([file], { env: {} })).files;
  const text = printUnits(kind, unitPlan(read!.job!, { program: ["runvault"], set: [], now: new Date(0) }));
  expect(text).toContain("15 2 * * *");
  expect(text).not.toContain("15 2\n");
});
