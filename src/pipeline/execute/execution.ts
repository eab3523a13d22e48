import { basename, dirname } from "node:path";
import type { Archive } from "../../archive/archive.ts";
import { committedBytes } from "../../archive/manifest/manifest-files.ts";
import { toldView } from "../../archive/manifest/table-view.ts";
import { beginInstances, joinAddress, knownSource } from "../../archive/sources.ts";
import { JobDuckDB } from "../../duckdb/job-duckdb.ts";
import { listFailure } from "../../extract/choose/list-finding.ts";
import { RunLists } from "../../extract/choose/run-lists.ts";
import type { ArchivedRun, ArchiveRunsJob } from "../../extract/run/archive-runs.ts";
import { type Budget, openBudget } from "../../extract/run/budget.ts";
import { exit, RunvaultError, worstExit } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import { earlierOf, isoOf } from "../../model/time.ts";
import { nextStarts } from "../file/cron.ts";
import type { JobFile } from "../file/job-files.ts";
import type {
  AfterLine,
  BeginLine,
  RecordedError,
  RecordLine,
  ResultLine,
  RunLine,
  RunResult,
  ToldLine,
} from "../record/job-record.ts";
import type { OpenRecord } from "../record/open-record.ts";
import { recordedError } from "../record/recorded-error.ts";
import { changesOf } from "../tell/changes.ts";
import type { Notifiers } from "../tell/open-notifiers.ts";
import { tellEnd } from "../tell/tell-end.ts";
import { stillOpen, troublesNow } from "../tell/troubles.ts";
import { skewText } from "./clock-skew.ts";
import type { ExecutionsBefore } from "./execution-before.ts";
import type { JobEvent } from "./job-event.ts";
import { jobExport } from "./job-exports.ts";
import { type JobMeans, wantedProof } from "./job-means.ts";
import {
  addressesOf,
  aliasesOf,
  chooseJobRuns,
  countPlans,
  type HeldRun,
  heldOf,
  instanceOfOther,
  type JobRun,
  type JobRuns,
  keyOf,
  wantedTables,
} from "./job-runs.ts";
import { hasRetention, keepRuns, unkeptRuns } from "./keep-runs.ts";
import { expiringRuns, freeBytesOf, nightSeen } from "./night-seen.ts";
import type { PatientGateway } from "./patient-gateway.ts";
import { reconcileRun } from "./reconcile-run.ts";
import { reportRun, unreported } from "./report-run.ts";
import { runLine } from "./run-line.ts";
import type { StopClock } from "./stop-clock.ts";
import { verifyChanged } from "./verify-changed.ts";
import { type WorkEnd, workOnRuns } from "./work-on-runs.ts";

export interface ExecutionInput {
  readonly file: JobFile;
  readonly means: JobMeans;
  readonly archive: Archive;
  readonly record: OpenRecord;
  readonly stop: StopClock;
  readonly before: ExecutionsBefore;
  /** Whether this execution created the archive. */
  readonly isNew: boolean;
  readonly startedMs: number;
}

/** An execution with an open record: its steps, one after another, and their results. No step throws. */
export class Execution {
  readonly #input: ExecutionInput;
  readonly #statuses: number[] = [];
  readonly #lines: RunLine[] = [];
  readonly #after: AfterLine[] = [];
  /** The current state of the job's runs in the archive. */
  readonly #held = new Map<string, HeldRun>();
  readonly #results = new Map<RunResult, number>();
  #runs: JobRuns | null = null;
  /** Why the gateway is unavailable. */
  #outage: () => RunvaultError | null = () => null;
  /** Null if the gateway could not be opened. */
  #stats: PatientGateway["stats"] | null = null;
  /** What ended the whole execution. */
  #ended: RunvaultError | null = null;
  /** What failed apart from the runs, if nothing ended the execution. */
  #beside: RunvaultError | null = null;
  /** Whether the stop left something undone. */
  #isLeft = false;
  #quarantined = 0;
  #grown = 0;

  constructor(input: ExecutionInput) {
    this.#input = input;
  }

  /** Chooses the runs and archives them. */
  async *work(gateway: PatientGateway): AsyncGenerator<JobEvent, void> {
    this.#stats = gateway.stats;
    this.#outage = () => gateway.outage;
    const { file, means, archive, stop } = this.#input;
    const { job } = file;
    const { bytes } = job.gateway.budget;
    using budget = openBudget(
      {
        maxBytes: bytes === undefined ? undefined : bytes / (1024 * 1024),
        bytesName: "gateway.budget.bytes",
      },
      gateway,
    );
    const signal = AbortSignal.any([stop.signal, budget.signal]);
    try {
      for (const alias of aliasesOf(job.gateway)) await joinAddress(archive, alias, gateway.label);
      const { runs, lists, known } = await this.#choose(gateway, budget, signal);
      this.#runs = runs;
      const skew = skewText(means.clock(), gateway.now?.(), job.settle.ns);
      if (skew !== null) means.note(skew);
      for (const finding of runs.findings) {
        yield { kind: "finding", finding };
        if (finding.error !== null) this.#failed(finding.error);
      }
      for (const run of runs.all) if (run.held !== null) this.#held.set(keyOf(run), run.held);
      const counts = countPlans(runs);
      this.#count("unchanged", counts.unchanged ?? 0);
      yield* this.#add({
        ...{ kind: "plan", at: isoOf(means.clock()), runs: counts },
        ...(runs.latest === null ? {} : { latest: formatRun(runs.latest) }),
      });
      means.step("planned-job");
      const taken = await beginInstances(archive, gateway.label, runs.begun, new Date(isoOf(means.clock())));
      for (const [instanceId, from] of taken) {
        const error = instanceOfOther(instanceId, from);
        yield { kind: "finding", finding: listFailure(error, instanceId, []) };
        this.#failed(error);
      }
      await using duckdb = new JobDuckDB();
      const own = runs.work.filter(({ instanceId }) => !taken.has(instanceId));
      const working = workOnRuns({
        ...{ archive, lists, known, runs: own, wanted: wantedTables(job), asked: wantedProof(job) },
        how: this.#how(budget, signal, duckdb),
        heldMs: job.per_run.ms,
      });
      let end: WorkEnd;
      try {
        let next = await working.next();
        for (; !next.done; next = await working.next()) {
          const event = next.value;
          if (event.kind === "run") yield* this.#ran(event.run, event.archived);
          else {
            yield { kind: "error", error: event.error };
            this.#failed(event.error);
          }
        }
        end = next.value;
      } finally {
        // nothing keeps running when the caller stops listening
        await working.return({ notTried: [], error: null });
      }
      const { notTried, error } = end;
      this.#count("not_tried", notTried.length);
      if (notTried.length > 0 && stop.windDown.aborted) this.#isLeft = true;
      if (error !== null && !stop.windDown.aborted) yield* this.ended(error);
    } catch (thrown) {
      yield* this.ended(thrown);
    }
  }

  async #choose(gateway: PatientGateway, budget: Budget, signal: AbortSignal) {
    const { file, means, archive, stop, before } = this.#input;
    const { job } = file;
    const { clock } = means;
    const known = await knownSource(archive, gateway.label);
    const { finished_status: words } = job.gateway;
    const lists = new RunLists(budget.gateway, {
      finishedStatus: words.length === 0 ? known.finishedStatus : words,
      marksFinal: known.marksFinal,
      settled: () => earlierOf(clock(), gateway.now?.()) - job.settle.ns,
    });
    const runs = await chooseJobRuns({
      ...{ job, lists, archive, source: gateway.label, now: clock(), asked: wantedProof(job) },
      lastAsked: before.lastAsked,
      failedBefore: before.failed,
      leftBefore: before.left,
      removedUpTo: before.removedUpTo,
      // nothing has begun yet that could be finished
      signal: AbortSignal.any([signal, stop.windDown]),
    });
    return { runs, lists, known };
  }

  #how(budget: Budget, signal: AbortSignal, duckdb: JobDuckDB): ArchiveRunsJob {
    const { file, means, stop, isNew } = this.#input;
    const { job } = file;
    const { clock, retry, tool, step, watcher, wait } = means;
    const { finished_status: words, budget: limits } = job.gateway;
    return {
      ...{ folder: job.archive, scratch: job.scratch, types: {}, empty: job.empty },
      ...{ clock, retry, tool, step, watcher, signal, windDown: stop.windDown, budget, duckdb },
      ...(wait === undefined ? {} : { wait }),
      finishedStatus: words.length === 0 ? undefined : words,
      target: { kind: "finished", instances: undefined },
      settings: {
        concurrency: limits.answers,
        settleNs: job.settle.ns,
        require: job.require,
        finalPass: job.final_pass,
      },
      tables: job.tables === "all" ? undefined : job.tables,
      widen: job.widen === undefined ? isNew : job.widen === "auto",
      parallelRuns: job.parallel_runs,
      perRunMs: job.per_run.ms,
    };
  }

  /** Records the result of a run. */
  async *#ran(run: JobRun, archived: ArchivedRun): AsyncGenerator<JobEvent, void> {
    const { file, means, stop, before } = this.#input;
    const wanted = wantedTables(file.job);
    for (const text of archived.outcome?.warnings ?? []) means.note(`warning: ${formatRun(run)}: ${text}`);
    const line = runLine({
      ...{ run, archived, wanted, at: isoOf(means.clock()), recorded: (error) => this.#recorded(error) },
      isStopping: stop.windDown.aborted,
      isToldGone: before.toldGone(run),
    });
    this.#lines.push(line);
    this.#count(line.result, 1);
    if (line.result === "stopped") this.#isLeft = true;
    else this.#statuses.push(line.exit);
    if (archived.outcome !== null) {
      const { manifest, changed } = archived.outcome;
      this.#held.set(keyOf(run), heldOf(manifest, wanted));
      if (changed) {
        this.#grown += committedBytes(manifest) - (run.held?.bytes ?? 0);
        for (const { name } of wanted) {
          const table = manifest.tables[name];
          if (table !== undefined) this.#quarantined += toldView(table).certificate?.quarantined ?? 0;
        }
      }
    }
    yield* this.#add(line);
  }

  /** Steps after the commits, none of which can undo them. */
  async *after(): AsyncGenerator<JobEvent, void> {
    const { file, means, archive, stop, before, record } = this.#input;
    const { verify, reconcile, reports, exports } = file.job.after;
    if (this.#runs === null) return;
    const changed = this.#lines.filter(({ result }) => result === "archived");
    if (verify !== "nothing" && changed.length > 0) {
      yield* this.#step({ what: "verify", out: null }, async () => {
        await using duckdb = new JobDuckDB();
        const runs = changed.map(({ instance, run }) => ({ instanceId: instance, runId: run }));
        const options = { deep: verify === "deep", duckdb, signal: stop.signal };
        return { error: await verifyChanged(archive, runs, options) };
      });
      means.step("verified-job");
    }
    for (const { instance, run } of reconcile === undefined ? [] : changed) {
      const ref = { instanceId: instance, runId: run };
      yield* this.#step({ what: "reconcile", out: formatRun(ref) }, () =>
        reconcileRun(archive, ref, reconcile!, stop.signal),
      );
    }
    const pages = [
      ...changed.map(({ instance, run }) => ({ instanceId: instance, runId: run })),
      ...unreported(before.troubles),
    ];
    for (const run of reports === undefined ? [] : new Map(pages.map((ref) => [keyOf(ref), ref])).values()) {
      const { tool, clock } = means;
      yield* this.#step({ what: "report", out: formatRun(run) }, () =>
        reportRun(archive, run, reports!, { signal: stop.signal, tool, at: isoOf(clock()) }),
      );
    }
    if (hasRetention(file.job)) {
      yield* this.#step({ what: "keep", out: null }, async () => {
        const sources = await addressesOf(file.job, archive, record.begin.source);
        const unkept = await unkeptRuns(archive, file.job, sources, means.clock(), stop.signal);
        const { runs: gone, ...kept } = await keepRuns(archive, unkept, before.removedUpTo, stop.signal);
        for (const run of gone) this.#held.delete(keyOf(run));
        this.#grown -= kept.removed.bytes + kept.removed.garbage;
        return kept;
      });
    }
    const runs = this.#runs.all.filter((run) => this.#held.has(keyOf(run)));
    const began = BigInt(Date.parse(record.begin.at)) * 1_000_000n;
    const { isMadeOf } = before;
    for (const one of exports) {
      yield* this.#step({ what: "export", out: basename(one.out) }, async () => {
        const { signal } = stop;
        return await jobExport({ archive, one, runs, began, isMadeOf, signal, step: means.step });
      });
    }
    if (exports.length > 0) means.step("exported-job");
  }

  /** Does one step after the commits, unless time is up, and records its result. */
  async *#step(
    what: Pick<AfterLine, "what" | "out">,
    action: () => Promise<
      { readonly error: RunvaultError | null } & Partial<
        Pick<AfterLine, "result" | "rows" | "fingerprint" | "verdict" | "removed" | "removedUpTo">
      >
    >,
  ): AsyncGenerator<JobEvent, void> {
    const { stop, means } = this.#input;
    const { windDown } = stop;
    const startedMs = performance.now();
    const tooLate = windDown.aborted
      ? RunvaultError.from(windDown.reason)
      : this.#ended?.exit === exit.storage
        ? this.#ended
        : null;
    const done =
      tooLate === null
        ? await action().catch((thrown: unknown) => ({ error: RunvaultError.from(thrown) }))
        : { error: tooLate };
    const { error } = done;
    const {
      result = error === null ? "done" : "failed",
      rows = null,
      fingerprint,
      verdict,
      removed,
      removedUpTo,
    } = done as Partial<AfterLine>;
    if (error !== null) {
      const isStop = windDown.aborted && (error === tooLate || error === windDown.reason);
      if (isStop || (windDown.aborted && error.code === "interrupted")) this.#isLeft = true;
      else {
        yield { kind: "error", error };
        this.#statuses.push(error.exit);
      }
    }
    const line: AfterLine = {
      ...{ kind: "after", at: isoOf(means.clock()), ...what, result, rows },
      seconds: secondsSince(startedMs),
      ...(fingerprint === undefined ? {} : { fingerprint }),
      ...(verdict === undefined ? {} : { verdict }),
      ...(removed === undefined ? {} : { removed }),
      ...(removedUpTo === undefined ? {} : { removedUpTo }),
      error: error === null ? null : this.#recorded(error),
    };
    this.#after.push(line);
    yield* this.#add(line);
  }

  /** Records the results of notifications. */
  async *told(lines: readonly ToldLine[]): AsyncGenerator<JobEvent, void> {
    for (const line of lines) yield* this.#add(line);
  }

  /** Notifies about the end, and adds the result; returns the exit status. */
  async *end(notifiers: Notifiers): AsyncGenerator<JobEvent, number> {
    const { file, means, stop, before, record } = this.#input;
    const { job } = file;
    const { windDown } = stop;
    if (windDown.aborted && this.#isLeft) this.#ended ??= this.#whyStopped();
    if (this.#ended !== null) this.#statuses.push(statusOf(this.#ended));
    const result = await this.#result();
    const { begin } = record;
    const recorded = (error: RunvaultError) => this.#recorded(error);
    const after = this.#runs === null ? null : this.#after;
    const lines = this.#lines;
    const night = nightSeen({
      ...{ job, begin, result, lines, after, runs: this.#runs, held: this.#held, before, recorded },
    });
    const open = stillOpen(before.troubles, night);
    const now = troublesNow(night, open);
    const changes = changesOf(open, now, result.at, job.notify.remind.ns);
    const next = job.schedule === undefined ? [] : nextStarts(job.schedule, 1, new Date(result.at));
    const { told, troubles } = await tellEnd(notifiers, {
      ...{ begin, result, runs: lines, changes },
      lastSuccess: before.history.lastSuccess?.result.at ?? null,
      nextStart: next[0]?.toISOString() ?? null,
    });
    yield* this.told(told);
    means.step("told-job");
    yield* this.#add({ ...result, troubles: [...troubles] });
    return worstExit(this.#statuses);
  }

  async #result(): Promise<Omit<ResultLine, "troubles">> {
    const { file, means, archive, startedMs } = this.#input;
    const runs = this.#runs;
    const now = means.clock();
    const error = this.#ended ?? this.#beside;
    return {
      kind: "result",
      at: isoOf(now),
      exit: worstExit(this.#statuses),
      seconds: secondsSince(startedMs),
      plans: runs === null ? {} : countPlans(runs),
      results: Object.fromEntries([...this.#results].filter(([, count]) => count > 0)),
      states: countsOf([...this.#held.values()].map(({ state }) => state)),
      expiring: runs === null ? 0 : expiringRuns(runs, this.#held, file.job, now).length,
      rows: sum(this.#lines, ({ rows }) => rows),
      bytes: sum(this.#lines, ({ bytes }) => bytes),
      quarantinedRows: this.#quarantined,
      requests: this.#stats?.requests ?? 0,
      retries: this.#stats?.retries ?? 0,
      peakMemoryMb: Math.round(process.resourceUsage().maxRSS / 1024),
      freeBytes: (await freeBytesOf(archive)) ?? 0,
      grownBytes: this.#grown,
      error: error === null ? null : this.#recorded(error),
    };
  }

  /** Records what ended the work as a whole. */
  async *ended(thrown: unknown): AsyncGenerator<JobEvent, void> {
    const { windDown } = this.#input.stop;
    const error = RunvaultError.from(thrown);
    const isStop = error === windDown.reason || error.retry === "again" || error.code === "interrupted";
    if (windDown.aborted && isStop) {
      this.#isLeft = true;
      return;
    }
    if (this.#ended === null) yield { kind: "error", error };
    this.#ended ??= error;
  }

  /** An outage explains more than the deadline that ended the wait for it; after a signal, both are said. */
  #whyStopped(): RunvaultError {
    const reason = RunvaultError.from(this.#input.stop.windDown.reason);
    const outage = this.#outage();
    if (outage === null || reason.code === "deadline") return outage ?? reason;
    const { status, hint } = reason;
    const message = `${reason.message} while the gateway was unavailable: ${outage.message}`;
    return new RunvaultError(reason.code, message, {
      cause: outage,
      ...(status === undefined ? {} : { status }),
      ...(hint === undefined ? {} : { hint }),
    });
  }

  #failed(error: RunvaultError): void {
    this.#beside ??= error;
    this.#statuses.push(error.exit);
  }

  #count(result: RunResult, runs: number): void {
    this.#results.set(result, (this.#results.get(result) ?? 0) + runs);
  }

  /** Adds a line to the record. A disk error does not stop the execution; the result reports it. */
  async *#add(line: Exclude<RecordLine, BeginLine>): AsyncGenerator<JobEvent, void> {
    yield { kind: "line", line };
    try {
      await this.#input.record.add(line);
    } catch (thrown) {
      const error = RunvaultError.from(thrown);
      if (this.#ended === null) yield { kind: "error", error };
      this.#ended ??= error;
      this.#statuses.push(error.exit);
    }
  }

  #recorded(error: RunvaultError): RecordedError {
    const { file, means, archive } = this.#input;
    const { scratch } = file.job;
    const folders = { archive: archive.dir, scratch, "the job file's folder": dirname(file.path) };
    return recordedError(error, folders, means.scrubber);
  }
}

/** A signal's error carries status 143 if it was a SIGTERM. */
function statusOf(error: RunvaultError): number {
  return error.code === "interrupted" && error.status === exit.terminated ? exit.terminated : error.exit;
}

function secondsSince(startedMs: number): number {
  return Math.round(performance.now() - startedMs) / 1000;
}

function countsOf<K extends string>(words: Iterable<K>): Partial<Record<K, number>> {
  const counts: Partial<Record<K, number>> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
