import { setTimeout } from "node:timers/promises";
import type { Layout } from "../../archive/layout.ts";
import { lockFile } from "../../archive/lock.ts";
import { RunvaultError } from "../../model/error.ts";
import { readRecords } from "./read-records.ts";

/** How long to retry a lock whose holder has no record: a look at the lock takes only milliseconds. */
const triedMs = 2_000;
const pauseMs = 50;

/**
 * Locks a job for one execution until disposed, with a kernel lock that a killed process releases. Throws `locked` if
 * another execution is running, and says which and since when.
 */
export async function lockJob(layout: Layout, job: string): Promise<AsyncDisposable> {
  const until = performance.now() + triedMs;
  for (;;) {
    try {
      return await lockFile(layout, layout.jobLockFile(job), `is an execution of ${job}`, {});
    } catch (error) {
      if (!(error instanceof RunvaultError) || error.code !== "locked") throw error;
      const running = await runningRecord(layout, job);
      if (running !== null) throw alreadyRunning(error, running);
      // two that start at once, or someone looks at the lock
      if (performance.now() > until) throw error;
    }
    await setTimeout(pauseMs);
  }
}

async function runningRecord(layout: Layout, job: string) {
  for await (const record of readRecords(layout, { job })) if (record.state === "running") return record;
  return null;
}

type Running = NonNullable<Awaited<ReturnType<typeof runningRecord>>>;

function alreadyRunning(cause: RunvaultError, { job, begin: { pid, host, at } }: Running): RunvaultError {
  return new RunvaultError(
    "locked",
    `another execution of ${job} (pid ${pid} on ${host}) has been running since ${at}`,
    {
      cause,
      place: cause.place,
      hint: `It does the same work. \`runvault jobs ${job}\` shows its result.`,
    },
  );
}
