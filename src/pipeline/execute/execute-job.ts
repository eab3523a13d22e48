import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { basename, dirname } from "node:path";
import { type Archive, findArchive, openArchive } from "../../archive/archive.ts";
import { readAddress } from "../../gateway/address.ts";
import { RunvaultError } from "../../model/error.ts";
import { isoOf } from "../../model/time.ts";
import type { JobFile } from "../file/job-files.ts";
import { lockJob } from "../record/job-lock.ts";
import { type OpenRecord, openRecord } from "../record/open-record.ts";
import { recordedError } from "../record/recorded-error.ts";
import { thinRecords } from "../record/thin-records.ts";
import { type Notifiers, openNotifiers } from "../tell/open-notifiers.ts";
import { tellStart } from "../tell/tell-start.ts";
import { tellFailedBeat, tellUnbegun } from "../tell/tell-unbegun.ts";
import { Execution } from "./execution.ts";
import { type ExecutionsBefore, executionsBefore } from "./execution-before.ts";
import type { JobEvent } from "./job-event.ts";
import { openJobGateway } from "./job-gateway.ts";
import type { JobMeans } from "./job-means.ts";
import { patientGateway } from "./patient-gateway.ts";
import { openStopClock } from "./stop-clock.ts";

/** How long to wait for an unavailable gateway if the job has no deadline. */
const usualPatienceMs = 3_600_000;

/** The default of `schedule.grace`. */
const usualGraceMs = 300_000;

/**
 * One execution of a job: plan, work, after, notify. Yields events as they happen and returns the exit status. Its
 * record begins before the first request. Throws if it cannot begin: `locked` if the same job is running.
 */
export async function* executeJob(file: JobFile, means: JobMeans): AsyncGenerator<JobEvent, number> {
  const { job } = file;
  const { clock, step, signal, env, scrubber, log } = means;
  const startedMs = performance.now();
  const deadlineMs = means.deadlineMs ?? job.schedule?.deadline?.ms ?? null;
  const graceMs = job.schedule?.grace.ms ?? usualGraceMs;
  const notifiers = openNotifiers(job, { env, scrubber, log, clock });
  let begun: Begun;
  try {
    begun = await beginning(file, means, deadlineMs);
  } catch (thrown) {
    await tellThatNot(notifiers, file, means, RunvaultError.from(thrown));
    throw thrown;
  }
  await using _begun = begun;
  const { archive, isNew, before, record } = begun;
  const { begin } = record;
  using stop = openStopClock({ deadlineMs, graceMs, signal });
  yield { kind: "line", line: begin };
  step("record-begun");
  // a slow notifier must not delay the work
  const starting = tellStart(notifiers);
  let telling = Promise.resolve();
  const execution = new Execution({ file, means, archive, record, stop, before, isNew, startedMs });
  try {
    await using opened = await openJobGateway(file, means);
    const patience = {
      windDown: stop.windDown,
      longestMs: deadlineMs === null ? usualPatienceMs : null,
      note: means.note,
      unreachableMs: job.notify.unreachable_after.ms,
      onUnreachable: (error: RunvaultError | null) => {
        telling = telling.then(() => tellUnreachable(notifiers, file, means, error));
      },
      ...means.pauses,
    };
    yield* execution.work(patientGateway(opened, patience));
  } catch (thrown) {
    // a missing token is reported like any other error
    yield* execution.ended(thrown);
  }
  yield* execution.after();
  // messages stay in order: the last one must be the newest
  await telling;
  yield* execution.told(await starting);
  const status = yield* execution.end(notifiers);
  try {
    await thinRecords(archive.layout, job.name, {
      keepMs: job.keep.jobs.ms,
      now: new Date(Number(clock() / 1_000_000n)),
    });
  } catch (thrown) {
    // the next execution tries again
    means.note(`old records of executions were not removed: ${RunvaultError.from(thrown).message}`);
  }
  return status;
}

/** An execution that has its job's lock and its record. */
interface Begun extends AsyncDisposable {
  readonly archive: Archive;
  /** Whether it created the archive. */
  readonly isNew: boolean;
  readonly before: ExecutionsBefore;
  readonly record: OpenRecord;
}

async function beginning(
  { job, path, sha256 }: JobFile,
  { clock, tool, step, set }: JobMeans,
  deadlineMs: number | null,
): Promise<Begun> {
  const began = clock();
  const isNew = (await findArchive(job.archive, { scratch: job.scratch })) === null;
  const archive = await openArchive(job.archive, { create: true, scratch: job.scratch, step });
  const lock = await lockJob(archive.layout, job.name);
  try {
    const before = await executionsBefore(archive.layout, job.name, began - job.recheck.ns, began);
    const record = await openRecord(archive.layout, {
      kind: "begin",
      version: 1,
      job: job.name,
      id: newId(),
      at: isoOf(began),
      file: basename(path),
      sha256,
      tool,
      host: hostname(),
      pid: process.pid,
      source: readAddress(job.gateway.url).label,
      deadline: deadlineMs === null ? null : isoOf(began + BigInt(deadlineMs) * 1_000_000n),
      set: set.map((text) => text.split("=", 1)[0]!),
    });
    const end = async () => {
      await record[Symbol.asyncDispose]();
      await lock[Symbol.asyncDispose]();
    };
    return { archive, isNew, before, record, [Symbol.asyncDispose]: end };
  } catch (error) {
    await lock[Symbol.asyncDispose]();
    throw error;
  }
}

/** Notifies that the gateway has been unavailable for long or, with null, that it is back. */
async function tellUnreachable(
  notifiers: Notifiers,
  { job }: JobFile,
  { clock, tool, scrubber }: JobMeans,
  error: RunvaultError | null,
): Promise<void> {
  const { message, hint, exit } =
    error === null
      ? { message: "it answers again", hint: null, exit: 0 }
      : recordedError(error, { archive: job.archive }, scrubber);
  const text = `the gateway is unavailable: ${message}`;
  await tellUnbegun(notifiers, {
    ...{ job: job.name, key: "unreachable", tool, at: isoOf(clock()), exit, hint },
    text: error === null ? "the gateway was unavailable" : text,
  });
}

/** Notifies that an execution could not begin. If one is already running, that one notifies. */
async function tellThatNot(
  notifiers: Notifiers,
  { job, path }: JobFile,
  { clock, tool, scrubber }: JobMeans,
  error: RunvaultError,
): Promise<void> {
  if (error.code === "locked" || error.code === "interrupted") return;
  const { archive, scratch } = job;
  const folders = { archive, scratch, "the job file's folder": dirname(path) };
  const { message, hint, exit } = recordedError(error, folders, scrubber);
  const text = `the job ${job.name} could not begin: ${message}`;
  await Promise.all([
    tellFailedBeat(notifiers),
    tellUnbegun(notifiers, { job: job.name, key: "job", tool, at: isoOf(clock()), exit, text, hint }),
  ]);
}

function newId(): string {
  const letters = "0123456789abcdefghijklmnopqrstuvwxyz";
  return [...randomBytes(8)].map((byte) => letters[byte % letters.length]).join("");
}
