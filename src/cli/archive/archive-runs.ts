import { JobDuckDB } from "../../duckdb/job-duckdb.ts";
import { type ArchiveTarget, type ChosenRuns, chooseRuns } from "../../extract/choose/choose-runs.ts";
import { type ArchivedRun, type ArchiveRunsJob, archiveRuns } from "../../extract/run/archive-runs.ts";
import { type Budget, openBudget } from "../../extract/run/budget.ts";
import { exitOfRun } from "../../extract/run/exit-of-run.ts";
import type { RunWatcher } from "../../extract/run-watcher.ts";
import { worstExit } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { wallClock } from "../../model/time.ts";
import { version } from "../../model/version.ts";
import { latestAtSource } from "../list/latest-run.ts";
import { killStep } from "../maintain/kill-step.ts";
import { openGatewayFor, retryPolicyFor } from "../options/gateway-options.ts";
import type { Progress } from "../output/progress.ts";
import type { Session } from "../process/session.ts";
import { tellPlans } from "./archive-dry-run.ts";
import type { RunReport } from "./archive-report.ts";
import { type ArchiveMeans, settingsOf } from "./archive-settings.ts";
import { ArchiveTelling } from "./archive-telling.ts";
import type { ArchiveValues } from "./archive-values.ts";
import { exitsOf, tellFindings } from "./list-findings.ts";

/** Archives the runs one after another. A failing run does not stop the others. */
export async function archiveAll(
  target: ArchiveTarget,
  values: ArchiveValues,
  session: Session,
): Promise<number> {
  const retry = retryPolicyFor(values, session);
  const leastRate =
    values.minRate === undefined
      ? undefined
      : { bytesPerSecond: values.minRate, windowMs: values.minRateWindow ?? 30_000 };
  await using gateway = await openGatewayFor(values, session, retry, { leastRate });
  await using duckdb = new JobDuckDB();
  return await archiveFrom({ gateway, duckdb, retry, clock: wallClock }, target, values, session);
}

/** The same with an open gateway and a given clock. */
export async function archiveFrom(
  means: ArchiveMeans,
  target: ArchiveTarget,
  values: ArchiveValues,
  session: Session,
): Promise<number> {
  using budget = openBudget(values, means.gateway);
  const { gateway } = budget;
  const signal = AbortSignal.any([session.signal, budget.signal]);
  return await archiveWithin(budget, { ...means, gateway }, target, values, { ...session, signal });
}

async function archiveWithin(
  budget: Budget,
  means: ArchiveMeans,
  asked: ArchiveTarget,
  values: ArchiveValues,
  session: Session,
): Promise<number> {
  const { clock, retry, duckdb, wait } = means;
  const { signal } = session;
  const settings = settingsOf(values, clock);
  const { archive: folder, scratch, finishedStatus, decimal: types, dryRun } = values;
  const settled = () => clock() - settings.settleNs;
  const target = await latestAtSource(asked, budget.gateway, settled, session);
  const chosen = await chooseRuns({
    ...{ source: budget.gateway, folder, scratch, target, finishedStatus, types },
    ...{ isMoved: values.sourceMoved, isDry: dryRun, settled, retry, signal },
  });
  const { runs, findings, lists, archive } = chosen;
  tellFindings(findings, session);
  const telling = new ArchiveTelling(session, target, runs);
  await telling.findings(findings);
  if (dryRun) return await tellPlans(runs, findings, means, lists, archive, values, telling, session);
  const statuses = exitsOf(findings);
  let notTried: readonly RunRef[];
  {
    using progress = session.progress();
    const job: ArchiveRunsJob = {
      ...{ folder, scratch, target, finishedStatus, types, clock, retry, signal, budget, duckdb, settings },
      ...(wait === undefined ? {} : { wait }),
      tool: `runvault ${version()}`,
      tables: values.tables,
      widen: values.widen === undefined ? undefined : values.widen === "auto",
      empty: values.empty,
      step: killStep(session.terminal.env),
      watcher: watcherOf(progress, session),
      parallelRuns: values.parallelRuns,
    };
    notTried = await archiveAndTell(chosen, job, statuses, telling, session);
  }
  await telling.notTried(notTried);
  const status = worstExit(statuses);
  await telling.end(status);
  return status;
}

/** Reports each run when it is done and collects its exit status. Returns the runs that were not tried. */
async function archiveAndTell(
  chosen: ChosenRuns,
  job: ArchiveRunsJob,
  statuses: number[],
  telling: ArchiveTelling,
  session: Session,
): Promise<readonly RunRef[]> {
  const archiving = archiveRuns(chosen, job);
  let next = await archiving.next();
  // a stop ends each run that is left: one error says so
  let stopped: number | undefined;
  for (; !next.done; next = await archiving.next()) {
    const event = next.value;
    if (event.kind === "run") {
      const isStopped = event.run.error?.code === "interrupted";
      const report =
        isStopped && stopped !== undefined
          ? { ...event.run, exit: stopped }
          : reportOf(event.run, job, session);
      if (isStopped) stopped = report.exit;
      statuses.push(report.exit);
      await telling.run(report);
    } else if (event.kind === "error") statuses.push(session.failure(event.error));
    else {
      tellFindings(event.findings, session);
      await telling.findings(event.findings);
      statuses.push(...exitsOf(event.findings));
    }
  }
  return next.value;
}

/** An error that ends one run is printed on standard error and does not end the command. */
function reportOf(run: ArchivedRun, job: Pick<ArchiveRunsJob, "tables">, session: Session): RunReport {
  const { outcome, error } = run;
  return { ...run, exit: outcome === null ? session.failure(error) : exitOfRun(outcome.manifest, job) };
}

/** Shows the progress of runs on a bar. */
export function watcherOf(progress: Progress, session: Session): RunWatcher {
  return {
    run: (run, number, of, isAlone) => progress.run(formatRun(run), number, of, isAlone),
    ended: () => progress.ended(),
    expect: (rows) => progress.expect(rows),
    rows: (rows, bytes) => progress.add(rows, bytes),
    conversion: (change) => progress.conversion(change),
    note: (text) => session.note(session.toCopy(text)),
    log: ({ instanceId, runId }, text) => session.log.info({ instance: instanceId, run: runId }, text),
  };
}
