import { exit } from "../../model/error.ts";
import type { JobFile } from "../file/job-files.ts";
import type { Notifiers } from "../tell/open-notifiers.ts";
import { tellUnbegun } from "../tell/tell-unbegun.ts";

/** A change of a scheduled job file: bad, or good again. */
export interface FileChange {
  /** The last valid job of the file. */
  readonly job: JobFile["job"];
  readonly file: string;
  /** The file's current errors; empty: it is good again. */
  readonly faults: readonly string[];
  readonly tool: string;
  readonly at: Date;
}

/** Most errors reported; `runvault check` prints all. */
const mostTold = 3;

/** Notifies the job's recipients that its file became bad, or good again. Never throws. */
export async function tellOfFile(
  notifiers: Notifiers,
  { job, file, faults, tool, at }: FileChange,
): Promise<void> {
  const isBad = faults.length > 0;
  const more = faults.length - mostTold;
  await tellUnbegun(notifiers, {
    ...{ job: job.name, key: "job:file", tool, at: at.toISOString(), exit: isBad ? exit.usage : exit.done },
    text: isBad
      ? `the job file cannot be run: ${faults.slice(0, mostTold).join("; ")}${more > 0 ? `; and ${more} more` : ""}`
      : "the job file could not be run",
    hint: isBad
      ? `Fix it: \`runvault check ${file}\` prints all that is wrong. Until then this job is not executed.`
      : null,
  });
}
