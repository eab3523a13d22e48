import { setTimeout } from "node:timers/promises";
import type { Layout } from "../../archive/layout.ts";
import { lockFile } from "../../archive/lock.ts";
import { RunvaultError } from "../../model/error.ts";
import { readRecords } from "./read-records.ts";

/** For how long a lock is tried that nobody with a record has: whoever looks at it has it for milliseconds. */
const triedMs = 2_000;
const pauseMs = 50;

/**
 * Holds a job for one execution, until it is disposed of: a kernel lock, so that a killed process leaves nothing behind.
 * Throws `locked` where another execution is under way, and says which and since when.
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
      // two that start at once, or a look at the lock
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
    `another execution of ${job} (pid ${pid} on ${host}) has been under way since ${at}`,
    {
      cause,
      place: cause.place,
      hint: `It does the same work. \`runvault jobs ${job}\` shows what came of it.`,
    },
  );
}
