import { RunvaultError, worstExit } from "../../model/error.ts";
import { wallClock } from "../../model/time.ts";
import { version } from "../../model/version.ts";
import { faultError } from "../../model/yaml/file-fault.ts";
import { executeJob } from "../../pipeline/execute/execute-job.ts";
import type { JobMeans } from "../../pipeline/execute/job-means.ts";
import { planJob } from "../../pipeline/execute/plan-job.ts";
import { type JobFile, readJobFiles } from "../../pipeline/file/job-files.ts";
import { inJobWords } from "../../pipeline/record/in-job-words.ts";
import { countBuffersWithHeap } from "../apart/external-memory.ts";
import { watcherOf } from "../archive/archive-runs.ts";
import { tellFindings } from "../archive/list-findings.ts";
import { killStep } from "../maintain/kill-step.ts";
import { retryPolicyFor } from "../options/gateway-options.ts";
import type { Progress } from "../output/progress.ts";
import { hintTextOf } from "../process/open-session.ts";
import type { Session } from "../process/session.ts";
import { addSecrets } from "./job-secrets.ts";
import { JobTelling } from "./job-telling.ts";

interface Values {
  readonly files: readonly string[];
  readonly set: readonly string[];
  readonly dryRun: boolean;
  /** In milliseconds; replaces the one in the files. */
  readonly deadline?: number | undefined;
}

/** Executes job files, one after another. A bad file does not stop the others. */
export async function executeFiles(values: Values, session: Session): Promise<number> {
  const { env } = session.terminal;
  const read = await readJobFiles(values.files, { env, set: values.set });
  const statuses = read.faults.map((fault) => session.failure(faultError(fault)));
  const telling = new JobTelling(session);
  for (const { job, faults } of statuses.length > 0 ? [] : read.files) {
    for (const fault of faults) {
      if (fault.level === "error") statuses.push(session.failure(faultError(fault)));
      else session.log.warn({ file: fault.file, line: fault.line }, fault.message);
    }
    if (job === null) continue;
    addSecrets(job.job, session);
    // a stop applies to all
    if (session.signal.aborted) {
      statuses.push(statusOfStop(session));
      break;
    }
    try {
      statuses.push(await (values.dryRun ? planned : executed)(job, values, telling, session));
    } catch (thrown) {
      statuses.push(session.failure(inFile(thrown, job)));
    }
  }
  const status = worstExit(statuses);
  await telling.end(status);
  return status;
}

/** Adds the file to an error without a place. */
function inFile(thrown: unknown, { file }: JobFile): RunvaultError {
  const error = RunvaultError.from(thrown);
  return ofJob(error.code === "invalid_argument" ? error.at({ file }) : error);
}

/** An error whose hint names keys of the job file. */
function ofJob(error: RunvaultError): RunvaultError {
  return error.hint === undefined ? error : error.advising(inJobWords(error.hint));
}

function statusOfStop({ signal }: Session): number {
  const { status, exit } = RunvaultError.from(signal.reason);
  return status ?? exit;
}

async function executed(
  file: JobFile,
  values: Values,
  telling: JobTelling,
  session: Session,
): Promise<number> {
  using progress = session.progress();
  const { archive, scratch } = file.job;
  const toCopy = hintTextOf({ archive, scratch }, session.terminal);
  const executing = executeJob(file, meansOf(file, values, progress, session));
  for (;;) {
    const step = await executing.next();
    if (step.done === true) return step.value;
    const event = step.value;
    if (event.kind === "line") await telling.line(file.job.name, event.line, toCopy);
    else if (event.kind === "error") session.failure(ofJob(event.error));
    else {
      tellFindings([event.finding], session);
      await telling.finding(file.job.name, event.finding);
    }
  }
}

async function planned(
  file: JobFile,
  values: Values,
  telling: JobTelling,
  session: Session,
): Promise<number> {
  using progress = session.progress();
  const planning = planJob(file, meansOf(file, values, progress, session));
  for (;;) {
    const step = await planning.next();
    if (step.done === true) {
      await telling.planned(file.job.name, step.value);
      return step.value.exit;
    }
    const event = step.value;
    if (event.kind === "planned") {
      if (event.run.error !== null) session.failure(ofJob(event.run.error));
      await telling.plannedRun(file.job.name, event.run);
    } else {
      tellFindings([event.finding], session);
      await telling.finding(file.job.name, event.finding);
    }
  }
}

function meansOf({ job }: JobFile, values: Values, progress: Progress, session: Session): JobMeans {
  const { terminal, scrubber, signal, log } = session;
  const gateway = new URL(job.gateway.url).host;
  return {
    ...{ env: terminal.env, scrubber, signal },
    clock: wallClock,
    deadlineMs: values.deadline,
    set: values.set,
    tool: `runvault ${version()}`,
    step: killStep(terminal.env),
    watcher: watcherOf(progress, session),
    retry: retryPolicyFor(job.gateway.budget, session, { reportsOutages: true }),
    log,
    note: (text) => session.note(text),
    warn: (file, text) => log.warn({ file }, text),
    onNotice: (text) => log.warn({ gateway }, text),
    onRowBuffers: countBuffersWithHeap,
  };
}
