import type { JobFile } from "../file/job-files.ts";
import { ScheduledFile } from "./scheduled-file.ts";

/** How an execution's process ended. */
export interface ProcessEnd {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** An execution in a separate process. */
export interface RunningProcess {
  readonly ended: Promise<ProcessEnd>;
  kill(signal: "SIGTERM" | "SIGKILL"): void;
}

/** Events of a scheduler. */
export type ScheduleEvent =
  /** A job's next start: `start`, delayed by jitter to `at`. */
  | { readonly kind: "next"; readonly job: string; readonly start: Date; readonly at: Date }
  /** `isLate`: makes up for a missed start. */
  | { readonly kind: "started"; readonly job: string; readonly start: Date; readonly isLate: boolean }
  | ({ readonly kind: "ended"; readonly job: string; readonly seconds: number } & ProcessEnd)
  /** A start that gets no execution. */
  | { readonly kind: "skipped"; readonly job: string; readonly start: Date; readonly why: SkipReason }
  /** The limit of parallel executions is reached; it starts when one ends. */
  | { readonly kind: "waits"; readonly job: string; readonly start: Date }
  /** A file that can no longer be run; `was` is its last valid form, if any. */
  | {
      readonly kind: "bad";
      readonly file: string;
      readonly faults: readonly string[];
      readonly was: JobFile | null;
    }
  /** A bad file that can be run again. */
  | { readonly kind: "good"; readonly file: string; readonly is: JobFile };

/**
 * `running`: the previous execution is still running. `missed`: nobody could start it in time. `bad`: the file has
 * errors.
 */
export type SkipReason = "running" | "missed" | "bad";

/** A file after reading: the job, or its errors. */
export type ReadScheduled = { readonly job: JobFile } | { readonly faults: readonly string[] };

export interface SchedulerMeans {
  readonly now: () => Date;
  /** Waits this long, or until woken. */
  readonly sleep: (ms: number, woken: AbortSignal) => Promise<void>;
  /** Reads all files; their names identify them from then on. */
  readonly read: () => Promise<ReadonlyMap<string, ReadScheduled>>;
  /** When the last execution of a job began; null if there was none. */
  readonly lastBegin: (job: JobFile) => Promise<Date | null>;
  readonly launch: (file: string) => RunningProcess;
  readonly tell: (event: ScheduleEvent) => void;
  /** Most files executed at the same time. */
  readonly parallel: number;
  /** Asks for an orderly end. */
  readonly signal: AbortSignal;
  readonly random?: () => number;
}

/** The files of a scheduler. */
export interface ScheduleStanding {
  /** How many can be run. */
  readonly good: number;
  /** Which cannot. */
  readonly bad: readonly string[];
  /** The running jobs. */
  readonly running: readonly string[];
}

/** A clock jump is noticed within this time. */
const longestSleepMs = 30_000;
/** A start that is at most this late counts as in time. */
const inTimeMs = 90_000;
/** Most missed starts reported, the last ones. */
const mostTold = 10;
/** Time for a process to end, in addition to its grace. */
const endMs = 5_000;

/**
 * Starts executions of job files on their schedules, each in a separate process, until it is stopped. Then running ones
 * are asked to end, and killed if they do not within their grace.
 */
export class Scheduler {
  readonly #means: SchedulerMeans;
  /** Files that were valid at some time. */
  readonly #files = new Map<string, ScheduledFile>();
  /** Files that cannot be run now. */
  readonly #bad = new Set<string>();
  readonly #running = new Map<string, { readonly process: RunningProcess; readonly startedMs: number }>();
  /** Starts that wait for their turn. */
  readonly #waiting = new Map<string, number>();
  /** The next starts, as reported. */
  readonly #told = new Map<string, number>();
  #wake = new AbortController();
  #reading: Promise<void> = Promise.resolve();

  constructor(means: SchedulerMeans) {
    this.#means = means;
  }

  get standing(): ScheduleStanding {
    const running = [...this.#running.keys()].map((file) => this.#files.get(file)!.job);
    const good = [...this.#files.keys()].filter((file) => !this.#bad.has(file)).length;
    return { good, bad: [...this.#bad], running };
  }

  /**
   * Reads all files again and applies changes. For a new job, starts that its records already cover are not repeated.
   */
  async reread(): Promise<void> {
    // one at a time: the last reading wins
    const reading = this.#reading.then(() => this.#readAll());
    this.#reading = reading.catch(() => {});
    await reading;
    this.#wake.abort();
  }

  /** Runs until the signal or a failure; by then every process that it started has ended. */
  async run(): Promise<void> {
    const { signal, now, sleep } = this.#means;
    const onStop = () => this.#wake.abort();
    signal.addEventListener("abort", onStop, { once: true });
    try {
      while (!signal.aborted) {
        this.#wake = new AbortController();
        const wake = this.#wake.signal;
        const pauses: number[] = [longestSleepMs];
        for (const [file, one] of this.#files) pauses.push(await this.#look(file, one, now()));
        if (signal.aborted) break;
        await sleep(Math.max(0, Math.min(...pauses)), wake);
      }
    } finally {
      signal.removeEventListener("abort", onStop);
      await this.#end();
    }
  }

  /** Starts what is due for a file; returns how long nothing more is, in milliseconds. */
  async #look(file: string, one: ScheduledFile, now: Date): Promise<number> {
    const { tell } = this.#means;
    const due = one.due(now);
    if (due === null) {
      const { next } = one;
      if (next === null) return longestSleepMs;
      this.#tellNext(file, one, next.start, next.at);
      return next.start.getTime() - now.getTime();
    }
    const { start, at, missed } = due;
    const waitMs = at.getTime() - now.getTime();
    if (waitMs > 0) return waitMs;
    for (const before of missed.slice(-mostTold)) {
      one.serve(before);
      tell({ kind: "skipped", job: one.job, start: before, why: "missed" });
    }
    if (this.#running.has(file)) {
      one.serve(start);
      tell({ kind: "skipped", job: one.job, start, why: "running" });
      return 0;
    }
    const hasWaited = this.#waiting.get(file) === start.getTime();
    const lateMs = -waitMs;
    const isLate = lateMs > inTimeMs && !hasWaited;
    if (isLate && lateMs > one.schedule.catch_up.ms) {
      one.serve(start);
      tell({ kind: "skipped", job: one.job, start, why: "missed" });
      return 0;
    }
    if (this.#running.size >= this.#means.parallel) {
      if (!hasWaited) tell({ kind: "waits", job: one.job, start });
      this.#waiting.set(file, start.getTime());
      return longestSleepMs;
    }
    this.#waiting.delete(file);
    one.serve(start);
    await this.reread();
    if (this.#means.signal.aborted) return 0;
    if (this.#bad.has(file)) tell({ kind: "skipped", job: one.job, start, why: "bad" });
    else this.#start(file, one, start, isLate);
    return 0;
  }

  #tellNext(file: string, one: ScheduledFile, start: Date, at: Date): void {
    if (this.#told.get(file) === start.getTime()) return;
    this.#told.set(file, start.getTime());
    this.#means.tell({ kind: "next", job: one.job, start, at });
  }

  async #readAll(): Promise<void> {
    const { read, tell, now, lastBegin, random } = this.#means;
    for (const [file, found] of await read()) {
      const known = this.#files.get(file);
      if ("faults" in found) {
        if (this.#bad.has(file)) continue;
        this.#bad.add(file);
        tell({ kind: "bad", file, faults: found.faults, was: known?.file ?? null });
        continue;
      }
      const { job } = found;
      if (known !== undefined) known.renew(job, now());
      else this.#files.set(file, new ScheduledFile(job, (await lastBegin(job)) ?? now(), random));
      if (this.#bad.delete(file)) tell({ kind: "good", file, is: job });
    }
  }

  #start(file: string, one: ScheduledFile, start: Date, isLate: boolean): void {
    const { launch, tell } = this.#means;
    const startedMs = performance.now();
    const process = launch(file);
    this.#running.set(file, { process, startedMs });
    tell({ kind: "started", job: one.job, start, isLate });
    void process.ended.then((end) => {
      this.#running.delete(file);
      const seconds = Math.round((performance.now() - startedMs) / 1000);
      tell({ kind: "ended", job: one.job, seconds, ...end });
      this.#wake.abort();
    });
  }

  async #end(): Promise<void> {
    const ending = [...this.#running].map(async ([file, { process }]) => {
      const graceMs = this.#files.get(file)!.schedule.grace.ms;
      process.kill("SIGTERM");
      const kill = setTimeout(() => process.kill("SIGKILL"), graceMs + endMs);
      await process.ended;
      clearTimeout(kill);
    });
    await Promise.all(ending);
  }
}
