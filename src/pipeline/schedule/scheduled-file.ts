import { nextStarts } from "../file/cron.ts";
import type { JobFile } from "../file/job-files.ts";
import type { JobSchedule } from "../file/job-schema.ts";

/** A start of a schedule, and its time after the file's jitter. */
export interface Start {
  readonly start: Date;
  readonly at: Date;
}

/** After a long sleep or a large clock jump, only the last starts count. */
const mostStarts = 10_000;

/** A scheduled job file: which starts are done, and which comes next. */
export class ScheduledFile {
  readonly #random: () => number;
  #file: JobFile;
  /** The last start that was served, skipped or missed. None up to it starts again, whatever the clock does. */
  #served: Date;
  /** The first start after it, once computed: it is needed every half minute. */
  #known: Date | null | undefined;
  /** The next start's jitter, drawn once per start. */
  #jitter: { readonly start: number; readonly ms: number } | null = null;

  /** `file` has a schedule. `served`: nothing up to it is to be started. */
  constructor(file: JobFile, served: Date, random: () => number = Math.random) {
    this.#file = file;
    this.#served = served;
    this.#random = random;
  }

  get file(): JobFile {
    return this.#file;
  }

  get job(): string {
    return this.#file.job.name;
  }

  get schedule(): JobSchedule {
    return this.#file.job.schedule!;
  }

  /** Takes over a changed file. Starts that only the new schedule had in the past are not missed. */
  renew(file: JobFile, now: Date): void {
    const { cron, timezone } = this.schedule;
    this.#file = file;
    if (cron === this.schedule.cron && timezone === this.schedule.timezone) return;
    this.#known = undefined;
    this.serve(now);
  }

  /** The last due start, and earlier ones that nothing served; null if none is due. */
  due(now: Date): (Start & { readonly missed: readonly Date[] }) | null {
    const starts: Date[] = [];
    let start = this.#following;
    while (start !== null && start <= now && starts.length < mostStarts) {
      starts.push(start);
      start = nextStarts(this.schedule, 1, start)[0] ?? null;
    }
    const last = starts.at(-1);
    if (last === undefined) return null;
    return { ...this.#withJitter(last), missed: starts.slice(0, -1) };
  }

  /** The first start after those served; null if the schedule has none. */
  get next(): Start | null {
    const start = this.#following;
    return start === null ? null : this.#withJitter(start);
  }

  /** Nothing up to this is to be started any more. */
  serve(start: Date): void {
    if (start <= this.#served) return;
    this.#served = start;
    this.#known = undefined;
  }

  get #following(): Date | null {
    if (this.#known === undefined) this.#known = nextStarts(this.schedule, 1, this.#served)[0] ?? null;
    return this.#known;
  }

  #withJitter(start: Date): Start {
    if (this.#jitter?.start !== start.getTime()) {
      const [after] = nextStarts(this.schedule, 1, start);
      // with starts closer together than the jitter, each would be overtaken by the next
      const most = Math.min(this.schedule.jitter.ms, (after ?? start).getTime() - start.getTime());
      this.#jitter = { start: start.getTime(), ms: Math.round(most * this.#random()) };
    }
    return { start, at: new Date(start.getTime() + this.#jitter.ms) };
  }
}
