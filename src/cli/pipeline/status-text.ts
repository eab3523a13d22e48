import { tableStates } from "../../archive/manifest/manifest.ts";
import { formatRun } from "../../model/run-argument.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { grouped, tookText } from "../../model/text/number-text.ts";
import { plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import type { DiskOutlook } from "../../pipeline/record/job-history.ts";
import { ageText } from "../output/age-text.ts";
import type { CommandToCopy } from "../output/command-to-copy.ts";
import { commandsInText } from "../output/commands-in-text.ts";
import { keyedLines } from "../output/keyed-lines.ts";
import { minuteText } from "../output/minute-text.ts";
import type { Session } from "../process/session.ts";
import type { ArchiveContents } from "./archive-contents.ts";
import { contentsLines, instancesText } from "./contents-text.ts";
import type { JobStanding } from "./job-standing.ts";
import type { RunsStanding } from "./runs-standing.ts";

/** The status of an archive's jobs. */
export interface Status {
  readonly archive: { readonly dir: string; readonly id: string | null };
  readonly jobs: readonly JobStanding[];
  readonly runs: RunsStanding;
  readonly disk: DiskOutlook;
  /** Null if a job file was named: then the status is about the job. */
  readonly contents: ArchiveContents | null;
}

/** The most jobs, unproven runs and expiring runs that fit on one screen. */
const mostJobs = 10;
const mostRuns = 5;
const mostTroubles = 5;

type Line = [string, string];

/** Width of names, so that the lines of jobs and archive line up. */
const nameColumns = 12;

/** The status in words, on one screen if little is wrong. */
export function statusText(status: Status, now: Date, command: CommandToCopy, session: Session): string {
  const { archive, jobs, runs, disk, contents } = status;
  const blocks: Line[][] = jobs.slice(0, mostJobs).map((job) => jobLines(job, now, command, session));
  if (jobs.length === 0) blocks.push([["jobs", "none has run in this archive"]]);
  if (jobs.length > mostJobs)
    blocks.push([["", `${mostJobs} of ${grouped(jobs.length)} jobs are shown; --json lists all`]]);
  blocks.push([
    ["archive", visible(archive.id === null ? `${archive.dir}, which does not exist yet` : archive.dir)],
    ["identity", identityText(status)],
    ["runs", `${runsText(runs, session)}${uncommittedText(contents, session)}`],
    ...unprovenLines(runs, command),
    ...expiringLines(runs),
    ["disk", diskText(disk)],
    ...(contents === null ? [] : contentsLines(contents, command)),
  ]);
  const text = blocks.map((lines) => keyedLines(lines, session, nameColumns)).join("\n");
  return contents === null ? text : `${text}${instancesText(contents, session)}`;
}

function jobLines(job: JobStanding, now: Date, command: CommandToCopy, { paint }: Session): Line[] {
  const { file, lastSuccess, lastResult, running, died, nextStart, timezone } = job;
  const ago = (iso: string) => `${ageText(now.getTime() - Date.parse(iso))} ago`;
  const lines: Line[] = [["job", visible(file === null ? job.job : `${job.job} (${file})`)]];
  lines.push([
    "last success",
    lastSuccess === null
      ? paint("never")
      : `${minuteText(lastSuccess.endedAt)}, ${ago(lastSuccess.endedAt)}, after ${tookText(lastSuccess.seconds * 1000)}`,
  ]);
  if (lastResult !== null && lastResult.id !== lastSuccess?.id) {
    const { endedAt, words, exit, error, id } = lastResult;
    lines.push([
      "last result",
      `${paint(words)} (exit status ${exit}), ${minuteText(endedAt)}, ${ago(endedAt)}`,
    ]);
    if (error !== null) lines.push(["", visible(`${error.code}: ${error.message}`)]);
    if (error !== null && error.hint !== null) lines.push(["", visible(commandsInText(error.hint, command))]);
    lines.push(["", visible(`\`${command("jobs", "show", id)}\` shows it in full`)]);
  }
  if (running !== null) {
    const until = running.deadline === null ? "" : `, to end by ${minuteText(running.deadline)}`;
    lines.push([
      "running",
      visible(`since ${minuteText(running.startedAt)}, pid ${running.pid} on ${running.host}${until}`),
    ]);
  }
  if (died !== null) {
    const when = `${minuteText(died.startedAt)}, ${ago(died.startedAt)}`;
    lines.push([
      "died",
      visible(
        `begun ${when}, pid ${died.pid} on ${died.host}; \`${command("jobs", "show", died.id)}\` shows how far it got`,
      ),
    ]);
  }
  lines.push(...troubleLines(job, command));
  if (nextStart !== null) {
    const zone = timezone === null || timezone === "UTC" ? "" : ` (${visible(timezone)})`;
    lines.push(["next start", `${minuteText(nextStart)}${zone}`]);
  }
  if (job.late === "too_old")
    lines.push(["late", `the last success is older than ${ageText(job.maxAgeMs ?? 0)}`]);
  return lines;
}

function identityText({ archive, contents }: Status): string {
  if (contents === null) return "";
  return `${archive.id}, format ${contents.format}, created ${visible(minuteText(contents.createdAt))}`;
}

/** Runs that are not in the archive's list yet. */
function uncommittedText(contents: ArchiveContents | null, { paint }: Session): string {
  const first = contents?.pending.filter(({ isCommitted }) => !isCommitted).length ?? 0;
  return first === 0 ? "" : `; also ${grouped(first)} ${paint("pending")}, not committed yet`;
}

function troubleLines({ job, lastResult, troubles }: JobStanding, command: CommandToCopy): Line[] {
  if (troubles.length === 0) return [];
  const count = `${grouped(troubles.length)} at the end of the last execution`;
  const lines = troubles
    .slice(0, mostTroubles)
    .map(({ text, since }): Line => ["", visible(`${text} (since ${minuteText(since)})`)]);
  if (troubles.length > mostTroubles) {
    const all = command("jobs", "show", lastResult?.id ?? job);
    lines.push(["", visible(`the first ${mostTroubles}; \`${all}\` lists more`)]);
  }
  return [["troubles", count], ...lines];
}

function runsText({ total, states, damaged }: RunsStanding, { paint }: Session): string {
  const counted = tableStates
    .filter((state) => states[state] > 0)
    .map((state) => `${grouped(states[state])} ${paint(state)}`);
  if (damaged > 0) counted.push(`${grouped(damaged)} ${paint("damaged")}`);
  return total === 0 ? "none" : `${grouped(total)}: ${counted.join(", ")}`;
}

function unprovenLines({ unproven }: RunsStanding, command: CommandToCopy): Line[] {
  if (unproven.length === 0) return [];
  const lines = unproven.slice(0, mostRuns).map((run): Line => {
    const { table, more, state, reason, ageMs, accepted } = run;
    const tables = more === 0 ? table : `${table} and ${more} more`;
    const said =
      accepted !== null
        ? `, accepted as it is by ${accepted.by}: ${accepted.reason}`
        : reason === null
          ? ""
          : `: ${reason}`;
    return ["", visible(`${formatRun(run)}  ${tables}: ${state}${said}; for ${ageText(ageMs)}`)];
  });
  const all = visible(`\`${command("runs", "--state", "QUARANTINED,UNVERIFIED,INCOMPLETE")}\``);
  const rest = unproven.length > mostRuns ? `the longest ${mostRuns}; ${all} lists all` : "";
  const again = unproven.find(({ command }) => command !== null)?.command;
  const next = again == null ? "" : visible(`\`${again}\` fetches what is missing`);
  return [["unproven", countText(unproven.length, "run")], ...lines, ["", next], ["", rest]];
}

function expiringLines({ expiring }: RunsStanding): Line[] {
  if (expiring === null || expiring.length === 0) return [];
  const soon = expiring.filter((run) => run.soon).length;
  const forgotten = expiring.filter(({ leftMs }) => leftMs === null).length;
  const counts = [
    soon > 0 ? `${grouped(soon)} within a quarter of \`keeps\`` : "",
    forgotten > 0 ? `${grouped(forgotten)} already forgotten by the gateway` : "",
  ].filter((text) => text !== "");
  const said = counts.length === 0 ? "" : `: ${counts.join(", ")}`;
  const lines = expiring
    .filter(({ leftMs }) => leftMs !== null)
    .slice(0, mostRuns)
    .map((run): Line => {
      const { forgottenAt, leftMs } = run;
      return [
        "",
        visible(
          `${formatRun(run)}  forgotten by the gateway ${minuteText(forgottenAt)}, in ${ageText(leftMs ?? 0)}`,
        ),
      ];
    });
  return [["expiring", `${countText(expiring.length, "unproven run")}${said}`], ...lines];
}

function diskText({ freeBytes, grownPerNight, nights }: DiskOutlook): string {
  const free = `${byteText(freeBytes)} free`;
  if (grownPerNight === null) return free;
  if (nights === null) return `${free}; the archive does not grow`;
  // beyond that, the exact number helps nobody
  const lasting = nights > 3_650 ? "over 10 years" : countText(nights, "night");
  return `${free}: ${lasting} at ${byteText(grownPerNight)} a night`;
}

function countText(count: number, noun: string): string {
  return `${grouped(count)} ${plural(count, noun)}`;
}
