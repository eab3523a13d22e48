import { resolve } from "node:path";
import { type Archive, findArchive, openArchive } from "../../archive/archive.ts";
import { freeBytes } from "../../extract/fetch/disk-need.ts";
import { exit, type RunvaultError, worstExit } from "../../model/error.ts";
import type { JobFile } from "../../pipeline/file/job-files.ts";
import { diskOutlook, type JobHistory, jobHistory } from "../../pipeline/record/job-history.ts";
import { jobsWithRecords } from "../../pipeline/record/read-records.ts";
import { defaultArchive } from "../options/default-archive.ts";
import { commandsToCopy } from "../output/command-to-copy.ts";
import type { Session } from "../process/session.ts";
import { ContentsCount } from "./archive-contents.ts";
import { standingOf } from "./job-standing.ts";
import { readJob } from "./read-job.ts";
import { runsStanding } from "./runs-standing.ts";
import { type Status, statusText } from "./status-text.ts";

interface Values {
  readonly file?: string | undefined;
  readonly archive?: string | undefined;
  readonly scratch?: string | undefined;
  readonly maxAge?: number | undefined;
  readonly set: readonly string[];
}

/**
 * Prints the status of jobs and, without a job file, the archive's contents. Exit status 4 if a job never succeeded, or
 * not for too long; 5 for damage.
 */
export async function tellStatus(values: Values, session: Session): Promise<number> {
  const job = values.file === undefined ? null : await readJob(values.file, values.set, session);
  if (job === null && values.file !== undefined) return exit.usage;
  const now = new Date();
  const dir = job?.job.archive ?? values.archive ?? defaultArchive;
  const scratch = job === null ? values.scratch : job.job.scratch;
  // a job that never ran has no archive yet; its first execution creates it
  const archive = job === null ? await openArchive(dir, { scratch }) : await findArchive(dir, { scratch });
  const statuses: number[] = [];
  const onDamage = (error: unknown) => void statuses.push(session.failure(error));
  const histories = await historiesOf(archive, job, onDamage);
  const jobs = histories.map((history) => standingOf(history, job, values.maxAge ?? null, now));
  const command = commandsToCopy({ archive: dir, scratch }, session);
  const count =
    job === null && archive !== null ? await ContentsCount.begin(archive, command, onDamage) : null;
  const status: Status = {
    archive: { dir: resolve(dir), id: archive?.id ?? null },
    jobs,
    runs: await runsStanding(archive, {
      job: job?.job ?? null,
      histories,
      now,
      onDamage,
      onManifest: async (manifest) => await count?.add(manifest),
      command,
      ...session,
    }),
    disk: diskOutlook(await freeBytes(dir), histories),
    contents: count?.contents ?? null,
  };
  // an archive that is filled by hand has no jobs
  const isLate = jobs.length === 0 ? values.maxAge !== undefined : jobs.some(({ late }) => late !== null);
  if (isLate) statuses.push(exit.incomplete);
  await session.print(
    session.json
      ? `${JSON.stringify({ ok: statuses.length === 0, ...status }, null, 2)}\n`
      : statusText(status, now, command, session),
  );
  return worstExit(statuses);
}

async function historiesOf(
  archive: Archive | null,
  job: JobFile | null,
  onDamage: (error: RunvaultError) => void,
): Promise<JobHistory[]> {
  const none = { newest: null, running: null, lastEnded: null, lastSuccess: null, grownBytes: [] };
  if (archive === null) return job === null ? [] : [{ job: job.job.name, ...none }];
  const names = job === null ? await jobsWithRecords(archive.layout, onDamage) : [job.job.name];
  return await Promise.all(names.map((name) => jobHistory(archive.layout, name, onDamage)));
}
