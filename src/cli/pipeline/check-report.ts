import { countText } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import { nextStarts } from "../../pipeline/file/cron.ts";
import type { JobFault } from "../../pipeline/file/job-fault.ts";
import type { ReadJobFile, ReadJobFiles } from "../../pipeline/file/job-files.ts";
import type { GlobalValues } from "../options/global-values.ts";
import { jobSummary } from "./job-summary.ts";

/** How many of the next starts are told. */
const starts = 5;

/** What was found in job files, for people: of a sound one what it would do, of others all that is wrong. */
export function checkText(
  { files, faults }: ReadJobFiles,
  now: Date,
  { quiet }: Pick<GlobalValues, "quiet">,
): string {
  const blocks = files.map((file) => fileText(file, now, quiet)).filter((text) => text !== "");
  if (faults.length > 0) blocks.unshift(faults.map(faultText).join(""));
  return blocks.join("\n");
}

function fileText({ file, job, faults }: ReadJobFile, now: Date, quiet: boolean): string {
  const told = faults.map(faultText).join("");
  if (job === null) {
    const errors = faults.filter(({ level }) => level === "error").length;
    return `${told}${visible(file)}: ${countText(errors, "error")}\n`;
  }
  if (quiet) return told;
  const lines = jobSummary(job, startsOf(job.job.schedule, now));
  return `${visible(file)}: ok\n${lines.map((line) => `  ${visible(line)}\n`).join("")}${told}`;
}

function startsOf(schedule: Parameters<typeof nextStarts>[0] | undefined, now: Date): readonly Date[] {
  return schedule === undefined ? [] : nextStarts(schedule, starts, now);
}

/** A fault in the form that editors and CI jump from, and what to do about it. */
export function faultText({ level, file, line, column, set, message, hint }: JobFault): string {
  const place = [file, line, column].filter((part) => part !== null).join(":");
  const where = [place, set].filter((part) => part !== null && part !== "").join(": ");
  const kind = level === "warning" ? "warning: " : "";
  return `${visible(where)}: ${kind}${visible(message)}\n  hint: ${visible(hint)}\n`;
}

/** The same as one JSON document. */
export function checkJson({ files, faults }: ReadJobFiles, now: Date): string {
  const told = files.map(({ file, job, faults: found }) => ({
    file,
    ok: job !== null,
    name: job?.written("name") ?? null,
    nextStarts: startsOf(job?.job.schedule, now).map((start) => start.toISOString()),
    faults: found,
  }));
  const ok = faults.length === 0 && files.every(({ job }) => job !== null);
  return `${JSON.stringify({ ok, faults, files: told }, null, 2)}\n`;
}
