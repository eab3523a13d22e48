import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { openRecord } from "../../src/pipeline/record/open-record.ts";
import { beginLine, resultLine } from "../fixtures/archive/job-records.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { start } from "../fixtures/command/command-process.ts";
import { freePort } from "../fixtures/command/free-port.ts";
import { JobWorld } from "../fixtures/pipeline/job-world.ts";
import { appendingTo } from "../fixtures/tell/appending-command.ts";

const minutely = { cron: "* * * * *", timezone: "UTC", grace: "10s" };

/** A record of an execution some minutes ago: the starts since then were missed, the last of them is due now. */
async function ranBefore(world: JobWorld, job = "nightly"): Promise<void> {
  const archive = await openArchive(world.dir, { create: true });
  const at = new Date(Date.now() - 5 * 60_000).toISOString();
  await using record = await openRecord(archive.layout, beginLine(1, { job, at }));
  await record.add(resultLine({ at }));
}

test("a daemon executes what is due, tells of a file that became bad, and ends on SIGTERM", async () => {
  await using world = await JobWorld.open(1, 2);
  const told = join(world.folder, "told");
  const file = await world.write({
    schedule: minutely,
    notify: { command: appendingTo(told) },
  });
  await ranBefore(world);
  const daemon = start(["schedule", file, "--listen", "127.0.0.1:0"]);
  await daemon.seen("nightly: exit status 0");
  await daemon.seen("health and metrics at ");
  await daemon.seen("was left out: nothing started the job in time");
  const { child, finished } = daemon;

  child.kill("SIGHUP");
  await daemon.seen("read again");
  const good = await readFile(file, "utf8");
  // whole or as before: the daemon reads the file at each start, too
  const replace = async (text: string) => {
    await writeFile(`${file}.new`, text);
    await rename(`${file}.new`, file);
  };
  await replace(good.replace("10s", "10"));
  child.kill("SIGHUP");
  await daemon.seen("cannot be run: ");
  await replace(good);
  child.kill("SIGHUP");
  await daemon.seen("can be run again");
  // beside those of the execution, which tells of the starts that were missed
  const aboutFile = async () =>
    (await readFile(told, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { text: string; execution: string | null; exit: number })
      .filter(({ execution }) => execution === null);
  await expect.poll(async () => (await aboutFile()).length).toBe(2);
  const messages = await aboutFile();
  expect(messages).toMatchObject([
    {
      execution: null,
      exit: 2,
      text: expect.stringContaining("schedule.grace must be a duration") as string,
    },
    { execution: null, exit: 0, text: expect.stringContaining("can be executed again") as string },
  ]);

  child.kill("SIGTERM");
  const { status, stdout, stderr } = await finished;
  expect([status, stdout]).toEqual([0, ""]);
  expect(stderr).toMatch(/\[nightly\.yaml\] i1\/r1 {2}COMPLETE/);
  expect(stderr).toContain("nightly started");
});

test("/health and /metrics say how the jobs stand", async () => {
  await using world = await JobWorld.open(1, 1);
  const file = await world.write({ schedule: minutely });
  const bad = await world.write({ schedule: { ...minutely, cron: "* * * *" } }, "bad");
  await ranBefore(world);
  const port = await freePort();
  const daemon = start(["schedule", file, bad, "--listen", `127.0.0.1:${port}`]);
  await daemon.seen("nightly: exit status 0");
  const get = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: answer.status, text: await answer.text() };
  };
  const health = await get("/health");
  expect([health.status, JSON.parse(health.text)]).toEqual([
    200,
    { status: "degraded", files: 1, badFiles: 1, running: [] },
  ]);
  await expect
    .poll(async () => (await get("/metrics")).text)
    .toContain('runvault_job_rows{job="nightly"} 3\n');
  const { text } = await get("/metrics");
  for (const line of ['runvault_job_exit_code{job="nightly"} 0', "runvault_schedule_bad_files 1"])
    expect(text).toContain(`${line}\n`);
  expect(text).toMatch(/^runvault_schedule_executions_total\{job="nightly",status="0"\} \d$/m);
  // of the starts of five minutes the last is due, or two are where a minute ends meanwhile
  expect(text).toMatch(/^runvault_schedule_skipped_total\{job="nightly",why="missed"\} [345]$/m);
  const next = Number(/^runvault_job_next_start_timestamp_seconds\{job="nightly"\} (\S+)$/m.exec(text)![1]);
  expect(next * 1000 - Date.now()).toBeGreaterThan(-60_000);
  expect(next * 1000 - Date.now()).toBeLessThanOrEqual(60_000);
  // each name is described once
  const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  expect(new Set(names).size).toBe(names.length);

  const taken = await runInside(["schedule", file, "--listen", `127.0.0.1:${port}`]);
  expect([taken.status, taken.stderr]).toEqual([2, expect.stringContaining("it cannot listen on")]);
  daemon.child.kill("SIGTERM");
  expect((await daemon.finished).status).toBe(0);
});

test("stopped while a job waits for its gateway, the daemon has it end in order", async () => {
  await using world = await JobWorld.open(1, 1);
  const file = await world.write({ schedule: minutely });
  await ranBefore(world);
  world.failing = new RunvaultError("server_error", "maintenance");
  const daemon = start(["schedule", file]);
  await daemon.seen("waiting for the gateway");
  daemon.child.kill("SIGTERM");
  const { status, stderr } = await daemon.finished;
  expect(status).toBe(0);
  expect(stderr).toMatch(/stopped by SIGTERM while the gateway was unavailable: .* maintenance \(exit 143\)/);
  expect(stderr).toContain("nightly: exit status 143");
});

test("files of which none can be run are refused, with all that is wrong", async () => {
  await using world = await JobWorld.open(1, 1);
  const unscheduled = await world.write();
  const bad = await world.write({ schedule: { ...minutely, cron: "0 0 30 2 *" } }, "bad");
  const { status, stderr } = await runInside(["schedule", unscheduled, bad]);
  expect(status).toBe(2);
  expect(stderr).toContain("it has no schedule");
  expect(stderr).toContain("never fires");
  expect(stderr).toContain("none of these files can be run");
});
