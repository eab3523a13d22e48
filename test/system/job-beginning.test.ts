import { spawnSync } from "node:child_process";
import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exit } from "../../src/model/error.ts";
import { jobHistory } from "../../src/pipeline/record/job-history.ts";
import { requires } from "../fixtures/command/requirement.ts";
import { JobWorld } from "../fixtures/pipeline/job-world.ts";
import { appendingTo } from "../fixtures/tell/appending-command.ts";

const ifFifo = test.skipIf(!requires("fifo"));

test("a job that cannot begin tells of it, for no execution does", async () => {
  await using world = await JobWorld.open(1, 1);
  const told = join(world.folder, "told");
  const file = await world.write({ notify: { command: appendingTo(told) } });
  await mkdir(join(world.dir, "locks"), { recursive: true });
  await writeFile(join(world.dir, "archive.json"), "");
  await expect(world.execute(file)).rejects.toThrow();
  const message = JSON.parse(await readFile(told, "utf8")) as { execution: null; exit: number; text: string };
  expect(message).toMatchObject({
    execution: null,
    worse: [{ key: "job", text: expect.stringContaining("the job nightly could not begin") as string }],
  });
  expect(message.exit).not.toBe(exit.done);
});

test("a record of a clock that was ahead hides nothing that comes after it", async () => {
  await using world = await JobWorld.open(1, 1);
  const file = await world.write();
  await world.execute(file);
  const folder = join(world.dir, "jobs", "nightly");
  const [name] = await readdir(folder);
  const ahead = name!.replace(/^\d{8}/, "20990101");
  const text = await readFile(join(folder, name!), "utf8");
  await writeFile(join(folder, ahead), text.replace(/"at":"\d{4}-\d\d-\d\d/g, '"at":"2099-01-01'));
  const second = await world.execute(file);
  expect(second.exit).toBe(exit.done);
  const { layout } = await world.archive();
  const { newest, lastSuccess } = await jobHistory(layout, "nightly", () => {});
  expect(newest?.begin.at.startsWith("2099")).toBe(false);
  expect(lastSuccess?.id).toBe(newest?.id);
  await rename(join(folder, ahead), join(world.folder, ahead));
});

ifFifo("a metrics file that is a pipe is told of, and keeps no job from its end", async () => {
  await using world = await JobWorld.open(1, 1);
  const pipe = join(world.folder, "job.prom");
  expect(spawnSync("mkfifo", [pipe]).status).toBe(0);
  const { exit: status, told } = await world.execute(await world.write({ metrics: { textfile: pipe } }));
  expect(status).toBe(exit.done);
  expect(told).toMatchObject([{ to: "textfile", result: "failed" }]);
});
