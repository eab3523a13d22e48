import { type Archive, findArchive, openArchive } from "../archive/archive.ts";
import type { Step } from "../archive/pending.ts";
import { knownSource, rememberSource } from "../archive/sources.ts";
import { JobDuckDB } from "../duckdb/job-duckdb.ts";
import { finishedRuns, type HeldRuns, type RunToArchive } from "../extract/finished-runs.ts";
import { firstOfMany } from "../extract/first-of-many.ts";
import { type ListFinding, listNote } from "../extract/list-finding.ts";
import { SeenSource } from "../extract/proof/seen-source.ts";
import { recogniseSource } from "../extract/recognise-source.ts";
import { RunLists } from "../extract/run-lists.ts";
import { RunvaultError, worstExit } from "../model/error.ts";
import type { HistorySource, RunRef } from "../model/source.ts";
import { wallClock } from "../model/time.ts";
import { planRuns } from "./archive-dry-run.ts";
import { type ArchiveMeans, archiveOneRun } from "./archive-one-run.ts";
import { refuseOtherTypes, settingsOf } from "./archive-settings.ts";
import { ArchiveTelling } from "./archive-telling.ts";
import type { ArchiveTarget, ArchiveValues } from "./archive-values.ts";
import { type Budget, openBudget } from "./budget.ts";
import { openGatewayFor, retryPolicyFor } from "./gateway-options.ts";
import { killStep } from "./kill-step.ts";
import { exitsOf, tellFindings } from "./list-findings.ts";
import { formatRun } from "./run-argument.ts";
import type { Session } from "./session.ts";

/** Moments of a job after which something of it stays, however it ends. */
const keepingSteps: ReadonlySet<string> = new Set([
  "segment-journalled",
  "survey-journalled",
  "window-compared",
  "parquet-journalled",
]);

/** Archives the runs one after another. One that fails does not keep the others from being archived. */
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

/** The same, from a gateway that is open, by a clock that may be any. */
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
  target: ArchiveTarget,
  values: ArchiveValues,
  session: Session,
): Promise<number> {
  const { gateway, retry, clock } = means;
  const settings = settingsOf(values, clock);
  let archive = await findArchive(values.archive, values);
  if (archive !== null && !values.dryRun) refuseOtherTypes(archive, values.decimal);
  // nobody relies yet on the types of an archive that this command makes
  const widen = values.widen ?? (archive === null ? "auto" : "never");
  const rules = { settled: () => clock() - settings.settleNs };
  if (archive !== null && !values.dryRun) {
    const lists = new RunLists(gateway, { ...rules, finishedStatus: values.finishedStatus ?? [] });
    const { signal } = session;
    await recogniseSource({ archive, source: gateway, lists, isMoved: values.sourceMoved, retry, signal });
  }
  const known = archive === null ? null : await knownSource(archive.layout, gateway.label);
  const lists = new RunLists(gateway, {
    ...rules,
    finishedStatus: values.finishedStatus ?? known?.finishedStatus ?? [],
  });
  const held = archive === null || known === null ? null : { archive, addresses: known.addresses };
  const { runs, findings } = await runsOf(target, lists, held, session);
  const telling = new ArchiveTelling(session, target, runs);
  await telling.findings(findings);
  if (values.dryRun) {
    return await planRuns(runs, findings, means, lists, archive, values, telling, session);
  }
  const kill = killStep(session.terminal.env);
  const step: Step = (name) => {
    if (keepingSteps.has(name)) budget.keep();
    kill(name);
  };
  /** The archive, made for the first run that the gateway knows: a misspelt name leaves nothing behind. */
  const archiveFor = async (run: RunRef) => {
    if (archive !== null) return archive;
    await lists.describe(run, session.signal);
    archive = await openArchive(values.archive, {
      create: true,
      exactTypes: values.decimal,
      scratch: values.scratch,
      step,
    });
    return archive;
  };
  const seen = new SeenSource(known ?? undefined, values.empty);
  const statuses = exitsOf(findings);
  let tried = 0;
  /** Whether the words were remembered, or could not be. */
  let hasWords = false;
  {
    using progress = session.progress();
    const shared = { settings, lists, seen, step, budget, progress };
    for (const run of runs) {
      if (budget.signal.aborted) {
        statuses.push(session.failure(budget.signal.reason));
        break;
      }
      budget.begin();
      progress.run(formatRun(run), ++tried, runs.length);
      const report = await archiveOneRun(run, means, archiveFor, { ...values, widen }, session, shared);
      statuses.push(report.exit);
      await telling.run(report);
      // only of a source that answers as one
      if (report.outcome !== null && archive !== null && !hasWords) {
        hasWords = true;
        try {
          await rememberWords(archive, gateway, values);
        } catch (error) {
          // the runs are archived all the same, and are to be reported
          statuses.push(session.failure(error));
        }
      }
      if (target.kind === "runs" && report.error === null) {
        const remarks = await remarkOn(run, lists, session.signal);
        tellFindings(remarks, session);
        await telling.findings(remarks);
        statuses.push(...exitsOf(remarks));
      }
      if (report.error?.scope === "job") break;
    }
  }
  await telling.notTried(runs.slice(tried));
  const status = worstExit(statuses);
  await telling.end(status);
  return status;
}

/** The runs to archive, with what there is to tell of the lists that named them, told. */
async function runsOf(
  target: ArchiveTarget,
  lists: RunLists,
  held: HeldRuns | null,
  session: Session,
): Promise<{ runs: readonly RunToArchive[]; findings: ListFinding[] }> {
  if (target.kind === "runs") {
    return { runs: target.runs.map((run) => ({ ...run, listed: true })), findings: [] };
  }
  const { runs, findings } = await finishedRuns(lists, target.instances, held, session.signal);
  const told = firstOfMany(findings);
  tellFindings(told, session);
  return { runs, findings: told };
}

/** What is odd about the description of a run that was named; nothing where its source does not know it any more. */
async function remarkOn(run: RunRef, lists: RunLists, signal: AbortSignal): Promise<ListFinding[]> {
  const note = (text: string) => [listNote(run.instanceId, [run.runId], `${run.runId}: ${text}`)];
  try {
    const { remark } = (await lists.look(run, signal)).standing;
    return remark === null ? [] : note(remark);
  } catch (thrown) {
    // the run is archived: whatever stops the command is told with the next
    if (signal.aborted) return [];
    const { code, message } = RunvaultError.from(thrown);
    if (code === "run_not_found" || code === "instance_not_found") return [];
    // the run's own job went by what there was before
    return note(`could not be looked up in the run list again: ${message}`);
  }
}

/** Keeps the source's own words for a run that has ended, where they were given. */
async function rememberWords(
  archive: Archive,
  { label }: HistorySource,
  { finishedStatus }: ArchiveValues,
): Promise<void> {
  if (finishedStatus === undefined) return;
  await rememberSource(archive.layout, label, (known) => ({ ...known, finishedStatus }));
}
