import { RunvaultError } from "../../model/error.ts";
import { type JobFile, readJobFiles } from "../../pipeline/file/job-files.ts";
import type { Session } from "../process/session.ts";
import { faultText } from "./check-report.ts";

/**
 * Reads a job file without its secrets, for commands that look only at its archive. Null if the file has errors: they
 * are printed on standard error; with JSON the first is thrown.
 */
export async function readJob(
  file: string,
  set: readonly string[],
  session: Session,
): Promise<JobFile | null> {
  const { env } = session.terminal;
  const { files, faults } = await readJobFiles([file], { env, set, purpose: "reading" });
  const all = [...faults, ...files.flatMap((one) => one.faults)].filter(({ level }) => level === "error");
  const job = files[0]?.job ?? null;
  if (all.length === 0 && job !== null) return job;
  if (session.json) {
    const [first] = all;
    throw new RunvaultError("invalid_argument", first?.message ?? "the job file has errors", {
      place: { file: first?.file ?? file, ...(first?.line == null ? {} : { line: first.line }) },
      hint: first?.hint ?? "`runvault check` lists everything that is wrong with it.",
    });
  }
  for (const fault of all) session.say(faultText(fault));
  return null;
}
