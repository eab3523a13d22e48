import { exit } from "../../model/error.ts";
import type { JobFile } from "../file/job-files.ts";
import type { Tellers } from "../tell/open-tellers.ts";
import { tellUnbegun } from "../tell/tell-unbegun.ts";

/** What became of a job file that a scheduler reads again: bad, or good again. */
export interface FileChange {
  /** The job as it read when it last could be run. */
  readonly job: JobFile["job"];
  readonly file: string;
  /** What is wrong with the file now; empty: nothing any more. */
  readonly faults: readonly string[];
  readonly tool: string;
  readonly at: Date;
}

/** So many faults of a file are told: `runvault check` prints them all. */
const mostTold = 3;

/** Tells those whom the job tells that its file became bad, or good again. Never throws. */
export async function tellOfFile(
  tellers: Tellers,
  { job, file, faults, tool, at }: FileChange,
): Promise<void> {
  const isBad = faults.length > 0;
  const more = faults.length - mostTold;
  await tellUnbegun(tellers, {
    ...{ job: job.name, key: "job:file", tool, at: at.toISOString(), exit: isBad ? exit.usage : exit.done },
    text: isBad
      ? `the job file cannot be run: ${faults.slice(0, mostTold).join("; ")}${more > 0 ? `; and ${more} more` : ""}`
      : "the job file could not be run",
    hint: isBad
      ? `Mend it: \`runvault check ${file}\` prints all that is wrong. Until then nothing of this job is executed.`
      : null,
  });
}
