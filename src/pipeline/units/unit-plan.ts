import { exit, RunvaultError, worthRetrying } from "../../model/error.ts";
import { visible } from "../../model/text/visible-text.ts";
import { type CronTimes, cronTimes } from "../file/cron.ts";
import type { JobFile } from "../file/job-files.ts";
import type { JobSchedule } from "../file/job-schema.ts";

/** What another scheduler needs to know about a job file; nothing in it comes from the environment. */
export interface UnitPlan {
  readonly file: JobFile;
  readonly name: string;
  readonly schedule: JobSchedule;
  readonly times: CronTimes;
  readonly seconds: PlanSeconds;
  /** The words that start runvault on this machine. */
  readonly program: readonly string[];
  /** Values that replace the file's, `KEY=VALUE`. */
  readonly set: readonly string[];
  /** Now: a time zone's clock changes are considered from here on. */
  readonly now: Date;
}

/** The times of a schedule in whole seconds, rounded up. */
interface PlanSeconds {
  readonly jitter: number;
  readonly grace: number;
  readonly catchUp: number;
  /** The time after which an execution must be hanging; null if it may take any time. */
  readonly longest: number | null;
}

/** Allowance beyond deadline and grace, for starting and notifying, before an execution counts as hanging. */
const allowanceSeconds = 120;

/** Time for a process to end once asked: its grace, and notifying. */
export function stopSeconds({ seconds }: UnitPlan): number {
  return seconds.grace + 60;
}

/** How late a start may be: the scheduler's own delay, plus catch_up. */
export function latestSeconds({ seconds }: UnitPlan): number {
  return Math.max(300, seconds.catchUp);
}

/**
 * Exit statuses that are worth a retry before the next start. Not the deadline: it says when the night is over, so the
 * rest waits for the next start, although the same command would continue.
 */
export const triedAgain: readonly number[] = [...worthRetrying].filter((status) => status !== exit.deadline);

/** The others: a retry does not help, or not before the next start. */
export const notTriedAgain: readonly number[] = [
  exit.bug,
  exit.usage,
  exit.incomplete,
  exit.damaged,
  exit.deadline,
  exit.refused,
];

/** How often, and after how long, a failure is retried before the next start. */
export const again = { times: 3, pauseSeconds: 600 } as const;

/** Throws `invalid_argument` if a file has no schedule, or one that cannot be printed. */
export function unitPlan(
  file: JobFile,
  { program, set, now }: Pick<UnitPlan, "program" | "set" | "now">,
): UnitPlan {
  const { name, schedule } = file.job;
  const place = { file: file.file };
  if (schedule === undefined) {
    throw new RunvaultError("invalid_argument", "the job file has no schedule", {
      place,
      hint: 'Add one, for example `schedule: { cron: "15 2 * * *", timezone: Europe/Berlin }`.',
    });
  }
  for (const key of ["name", "schedule"]) {
    if (!file.isFromEnvironment(key)) continue;
    throw new RunvaultError("invalid_argument", `${key} comes from the environment, which is never printed`, {
      place,
      hint: "Write it in the file, or give it with --set.",
    });
  }
  for (const text of [file.path, ...program, ...set]) {
    if (visible(text) === text) continue;
    throw new RunvaultError("invalid_argument", `${JSON.stringify(visible(text))} has invisible characters`, {
      place,
      hint: "Give the file another name: schedulers read their files line by line.",
    });
  }
  const { jitter, grace, catch_up, deadline } = schedule;
  return {
    ...{ file, name, schedule, program, set, now },
    times: cronTimes(schedule.cron),
    seconds: {
      jitter: secondsOf(jitter.ms),
      grace: secondsOf(grace.ms),
      catchUp: secondsOf(catch_up.ms),
      longest:
        deadline === undefined ? null : secondsOf(deadline.ms) + secondsOf(grace.ms) + allowanceSeconds,
    },
  };
}

function secondsOf(ms: number): number {
  return Math.ceil(ms / 1000);
}

/** The arguments of `runvault` that execute the file at a path. */
export function runWords(path: string, { set }: UnitPlan): readonly string[] {
  return ["run", path, ...set.flatMap((value) => ["--set", value])];
}

/** The first lines of each output, as comments. */
export function headLines(kind: string, { file, set }: UnitPlan): readonly string[] {
  const options = set.length === 0 ? "" : " with the same --set";
  return [
    `Printed by \`runvault schedule --print ${kind}\` from ${visible(file.path)}.`,
    `Print it again${options} when the file's name, schedule or variables change.`,
  ];
}

/** The file's variables as comments: what must be set, never the values. */
export function variableLines({ file }: UnitPlan): readonly string[] {
  return file.variables.map(({ name, isNeeded }) =>
    isNeeded ? name : `${name} (has a default in the file)`,
  );
}

/** Lines as comments. */
export function comments(...lines: readonly string[]): string {
  return lines.map((line) => (line === "" ? "#\n" : `# ${line}\n`)).join("");
}
