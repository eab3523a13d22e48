import { findArchive } from "../../archive/archive.ts";
import { RunvaultError } from "../../model/error.ts";
import { jobsWithRecords } from "../../pipeline/record/read-records.ts";
import { shellWord } from "../output/shell-word.ts";
import { hintTextOf } from "../process/open-session.ts";
import type { Session } from "../process/session.ts";
import { readJob } from "./read-job.ts";

interface Values {
  readonly file: string | undefined;
  readonly archive?: string | undefined;
  readonly set: readonly string[];
}

/** Where jobs have their records. */
export interface JobsIn {
  readonly archive: string;
  /** The job of the file; null without one. */
  readonly job: string | null;
  /** Its hints name commands that work in this archive. */
  readonly session: Session;
}

/**
 * The archive with the records: that of the job file, the named one, or the current folder. There is no other default,
 * because `./archive` may belong to another job. Null for a job file with errors, after printing them. Throws if the job
 * of the file has no records yet.
 */
export async function jobsIn({ file, archive, set }: Values, session: Session): Promise<JobsIn | null> {
  if (file !== undefined) {
    const job = await readJob(file, set, session);
    if (job === null) return null;
    const { name, archive: dir } = job.job;
    const found = await findArchive(dir);
    if (found === null || !(await jobsWithRecords(found.layout)).includes(name)) {
      throw new RunvaultError("invalid_argument", `the job ${name} has not run yet`, {
        hint: `\`runvault run ${shellWord(file)}\` runs it.`,
      });
    }
    return { archive: dir, job: name, session: sessionIn(dir, session) };
  }
  if (archive !== undefined) return { archive, job: null, session: sessionIn(archive, session) };
  const isHere = await findArchive(".").then(
    (found) => found !== null,
    () => false,
  );
  if (isHere) return { archive: ".", job: null, session: sessionIn(".", session) };
  throw new RunvaultError("invalid_argument", "this folder is not an archive, and no job is named", {
    hint: "Name the job file, as in `runvault jobs nightly.yaml`, or give --archive DIR.",
  });
}

function sessionIn(archive: string, session: Session): Session {
  return { ...session, toCopy: hintTextOf({ archive }, session.terminal) };
}
