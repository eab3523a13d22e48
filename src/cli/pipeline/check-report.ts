import { countText } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import type { FileFault } from "../../model/yaml/file-fault.ts";
import type { ConnectedJob } from "../../pipeline/connect/connect-job.ts";
import { nextStarts } from "../../pipeline/file/cron.ts";
import type { ReadJobFile, ReadJobFiles } from "../../pipeline/file/job-files.ts";
import type { GlobalValues } from "../options/global-values.ts";
import { connectedJson, connectedLines } from "./connected-report.ts";
import { jobSummary } from "./job-summary.ts";

/** Number of next starts shown. */
const starts = 5;

/** The findings of `--connect` by file; null without it. */
export type Connected = ReadonlyMap<string, ConnectedJob> | null;

/** The result of a check for people: what sound files would do, and everything wrong with the others. */
export function checkText(
  { files, faults }: ReadJobFiles,
  now: Date,
  { quiet }: Pick<GlobalValues, "quiet">,
  connected: Connected = null,
): string {
  const blocks = files
    .map((file) => fileText(file, now, quiet, connected?.get(file.file)))
    .filter((text) => text !== "");
  if (faults.length > 0) blocks.unshift(faults.map(faultText).join(""));
  return blocks.join("\n");
}

function fileText(
  { file, job, faults: ofFile }: ReadJobFile,
  now: Date,
  quiet: boolean,
  connected?: ConnectedJob,
): string {
  const faults = [...ofFile, ...(connected?.faults ?? [])];
  const told = faults.map(faultText).join("");
  const errors = faults.filter(({ level }) => level === "error").length;
  const result = `${visible(file)}: ${errors === 0 ? "ok" : countText(errors, "error")}\n`;
  if (job === null) return `${told}${result}`;
  if (quiet) return errors === 0 ? told : `${told}${result}`;
  const lines = jobSummary(job, startsOf(job.job.schedule, now));
  if (connected !== undefined) lines.push(...connectedLines(connected));
  const summary = lines.map((line) => `  ${visible(line)}\n`).join("");
  // errors come last, where they are seen
  return errors === 0 ? `${result}${summary}${told}` : `${visible(file)}:\n${summary}${told}${result}`;
}

function startsOf(schedule: Parameters<typeof nextStarts>[0] | undefined, now: Date): readonly Date[] {
  return schedule === undefined ? [] : nextStarts(schedule, starts, now);
}

/** An error in the form that editors and CI understand, with its hint. */
export function faultText(fault: FileFault): string {
  return `${faultLine(fault)}\n  hint: ${visible(fault.hint)}\n`;
}

/** An error in the form that editors and CI understand. */
export function faultLine({ level, file, line, column, set, message }: FileFault): string {
  const place = [file, line, column].filter((part) => part !== null).join(":");
  const where = [place, set].filter((part) => part !== null && part !== "").join(": ");
  const kind = level === "warning" ? "warning: " : "";
  return `${visible(where)}: ${kind}${visible(message)}`;
}

/** The same as one JSON document. */
export function checkJson({ files, faults }: ReadJobFiles, now: Date, connected: Connected = null): string {
  const told = files.map(({ file, job, faults: ofFile }) => {
    const found = connected?.get(file);
    const all = [...ofFile, ...(found?.faults ?? [])];
    return {
      file,
      ok: job !== null && all.every(({ level }) => level !== "error"),
      name: job?.written("name") ?? null,
      nextStarts: startsOf(job?.job.schedule, now).map((start) => start.toISOString()),
      faults: all,
      ...(connected === null ? {} : { connect: found === undefined ? null : connectedJson(found) }),
    };
  });
  const ok = faults.length === 0 && told.every((file) => file.ok);
  return `${JSON.stringify({ ok, faults, files: told }, null, 2)}\n`;
}
