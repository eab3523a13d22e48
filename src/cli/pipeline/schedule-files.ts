import { basename, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findArchive } from "../../archive/archive.ts";
import { exit, RunvaultError } from "../../model/error.ts";
import { timerMs } from "../../model/retry/deadline.ts";
import { durationText } from "../../model/text/duration-text.ts";
import { version } from "../../model/version.ts";
import { type JobFile, readJobFiles } from "../../pipeline/file/job-files.ts";
import { type JobHistory, jobHistory } from "../../pipeline/record/job-history.ts";
import { launchRun } from "../../pipeline/schedule/launch-run.ts";
import { measuredJob } from "../../pipeline/schedule/measured-job.ts";
import { openScheduleServer } from "../../pipeline/schedule/schedule-server.ts";
import { type ReadScheduled, type ScheduleEvent, Scheduler } from "../../pipeline/schedule/scheduler.ts";
import { tellOfFile } from "../../pipeline/schedule/tell-of-file.ts";
import type { MeasuredJob } from "../../pipeline/tell/metrics.ts";
import { openNotifiers } from "../../pipeline/tell/open-notifiers.ts";
import type { Session } from "../process/session.ts";
import { faultLine } from "./check-report.ts";
import { addSecrets } from "./job-secrets.ts";

interface Values {
  readonly files: readonly string[];
  readonly set: readonly string[];
  readonly parallel: number;
  readonly listen?: { readonly host: string; readonly port: number } | undefined;
}

/** Starts job files on their schedules until it is stopped. */
export async function scheduleFiles(values: Values, session: Session): Promise<number> {
  const { terminal, signal } = session;
  const figures = new Map<string, MeasuredJob>();
  const jobs = new Map<string, JobFile>();
  const telling = new Set<Promise<void>>();
  const during = (work: Promise<void>) => {
    const done = work
      .catch((error: unknown) => void session.failure(error))
      .finally(() => telling.delete(done));
    telling.add(done);
  };
  let lastTold = Promise.resolve();

  const history = async (file: JobFile): Promise<JobHistory | null> => {
    try {
      const archive = await findArchive(file.job.archive);
      if (archive === null) return null;
      return await jobHistory(archive.layout, file.job.name, (error) => void session.failure(error));
    } catch (error) {
      // its executions notify about it, too
      session.failure(error);
      return null;
    }
  };
  const measure = async (file: JobFile): Promise<void> => {
    const found = await history(file);
    try {
      const measured = found === null ? null : await measuredJob(found);
      if (measured !== null) figures.set(file.job.name, measured);
    } catch (error) {
      // missing metrics do not stop the scheduler
      session.failure(error);
    }
  };

  const hears: ((event: ScheduleEvent) => void)[] = [
    (event) => {
      const isTrouble =
        event.kind === "bad" ||
        event.kind === "skipped" ||
        (event.kind === "ended" && event.status !== exit.done);
      if (isTrouble) session.log.warn(eventText(event));
      else session.note(`${new Date().toISOString().slice(11, 19)} ${eventText(event)}`);
    },
    (event) => {
      if (event.kind === "ended" && jobs.has(event.job)) during(measure(jobs.get(event.job)!));
      const changed = fileChangeIn(event);
      if (changed === null) return;
      // in order: the last notification must show the file's current state
      lastTold = lastTold.catch(() => {}).then(() => tell(changed, session));
      during(lastTold);
    },
  ];
  const scheduler = new Scheduler({
    now: () => new Date(),
    sleep: async (ms, woken) => {
      // ends early when woken
      await sleep(timerMs(ms), undefined, { signal: woken }).catch(() => {});
    },
    read: async () => {
      const read = await readScheduled(values, session);
      jobs.clear();
      for (const one of read.values()) if ("job" in one) jobs.set(one.job.job.name, one.job);
      return read;
    },
    lastBegin: async (file) => {
      await measure(file);
      const newest = (await history(file))?.newest ?? null;
      return newest === null ? null : new Date(newest.begin.at);
    },
    launch: (file) => {
      const set = values.set.flatMap((text) => ["--set", text]);
      const program = [process.execPath, resolve(process.argv[1] ?? "")] as const;
      return launchRun(program, ["run", file, ...set], terminal.env, (line) => {
        if (line.trim() !== "") session.say(`[${basename(file)}] ${line}\n`);
      });
    },
    tell: (event) => {
      for (const hear of hears) hear(event);
    },
    parallel: values.parallel,
    signal,
  });

  await scheduler.reread();
  if (scheduler.standing.good === 0) {
    throw new RunvaultError("invalid_argument", "none of these files can be run", {
      hint: "Fix them, and test them with `runvault check`.",
    });
  }
  await using server =
    values.listen === undefined
      ? null
      : await openScheduleServer({
          ...values.listen,
          standing: () => scheduler.standing,
          measured: () => figures.values(),
        });
  if (server !== null) {
    hears.push((event) => server.hear(event));
    session.note(`health and metrics at ${server.url}`);
  }
  const onHangup = () => {
    session.note("SIGHUP: the job files are read again");
    scheduler.reread().catch((error: unknown) => void session.failure(error));
  };
  terminal.signals.on("SIGHUP", onHangup);
  try {
    await scheduler.run();
    await Promise.all(telling);
  } finally {
    terminal.signals.off("SIGHUP", onHangup);
  }
  // stopping is the normal end of a scheduler
  return exit.done;
}

/** Reads the files, checks each, and checks them against each other. */
async function readScheduled(
  { files, set }: Values,
  { terminal }: Session,
): Promise<Map<string, ReadScheduled>> {
  const read = await readJobFiles(files, { env: terminal.env, set });
  const errors = (faults: typeof read.faults) =>
    faults.filter(({ level }) => level === "error").map(faultLine);
  return new Map(
    read.files.map(({ file, job, faults }): [string, ReadScheduled] => {
      if (read.faults.length > 0) return [file, { faults: errors(read.faults) }];
      if (job === null) return [file, { faults: errors(faults) }];
      if (job.job.schedule !== undefined) return [file, { job }];
      return [
        file,
        { faults: [`${file}: it has no schedule; give it one, or execute it with runvault run`] },
      ];
    }),
  );
}

interface Changed {
  readonly file: string;
  readonly was: JobFile;
  readonly faults: readonly string[];
}

function fileChangeIn(event: ScheduleEvent): Changed | null {
  if (event.kind === "good") return { file: event.file, was: event.is, faults: [] };
  if (event.kind !== "bad" || event.was === null) return null;
  return { file: event.file, was: event.was, faults: event.faults };
}

async function tell({ file, was, faults }: Changed, session: Session): Promise<void> {
  const { job } = was;
  const { terminal, scrubber, log } = session;
  addSecrets(job, session);
  const notifiers = openNotifiers(job, { env: terminal.env, scrubber, log });
  await tellOfFile(notifiers, { job, file, faults, tool: `runvault ${version()}`, at: new Date() });
}

function eventText(event: ScheduleEvent): string {
  switch (event.kind) {
    case "next":
      return `${event.job} starts at ${event.at.toISOString()}`;
    case "started":
      return event.isLate
        ? `${event.job} makes up for its start of ${event.start.toISOString()}`
        : `${event.job} started`;
    case "ended": {
      const how =
        event.signal === null ? `exit status ${event.status ?? "unknown"}` : `ended by ${event.signal}`;
      return `${event.job}: ${how} after ${durationText(event.seconds * 1000)}`;
    }
    case "skipped":
      return `${event.job}: its start of ${event.start.toISOString()} was left out: ${skipWords[event.why]}`;
    case "waits":
      return `${event.job} waits for another job to end`;
    case "bad":
      return `${event.file} cannot be run: ${event.faults.join("; ")}`;
    case "good":
      return `${event.file} can be run again`;
  }
}

const skipWords = {
  running: "the previous execution is still running",
  missed: "nothing started the job in time",
  bad: "its file has errors",
};
