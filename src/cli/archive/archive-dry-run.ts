import type { Archive } from "../../archive/archive.ts";
import type { RunToArchive } from "../../extract/choose/finished-runs.ts";
import type { ListFinding } from "../../extract/choose/list-finding.ts";
import type { RunLists } from "../../extract/choose/run-lists.ts";
import { roomText } from "../../extract/fetch/disk-need.ts";
import { planRun, type RunPlan } from "../../extract/plan/plan-run.ts";
import { SeenSource } from "../../extract/proof/seen-source.ts";
import { defaultSettings } from "../../extract/run/archive-run.ts";
import { RunvaultError, worstExit } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import { byteText } from "../../model/text/byte-text.ts";
import type { Session } from "../process/session.ts";
import { failedPlanJson, failedPlanText, planJson, planText } from "./archive-plan-report.ts";
import { PlanTotals } from "./archive-plan-totals.ts";
import { type ArchiveMeans, settingsOf } from "./archive-settings.ts";
import type { ArchiveTelling } from "./archive-telling.ts";
import type { ArchiveValues } from "./archive-values.ts";
import { exitsOf } from "./list-findings.ts";

/** Plans the runs one after another, and tells of each, and what all come to. Fetches and writes nothing. */
export async function planRuns(
  runs: readonly RunToArchive[],
  findings: readonly ListFinding[],
  means: ArchiveMeans,
  lists: RunLists,
  archive: Archive | null,
  values: ArchiveValues,
  telling: ArchiveTelling,
  session: Session,
): Promise<number> {
  const { stream, form } = telling;
  const { quiet } = session.globals;
  const totals = new PlanTotals();
  const statuses = exitsOf(findings);
  const seen = new SeenSource();
  let tried = 0;
  {
    using progress = session.progress();
    for (const run of runs) {
      progress.run(formatRun(run), ++tried, runs.length);
      if (!run.listed) {
        totals.addNotListed();
        await telling.notListed(run);
        continue;
      }
      try {
        const plan = await planOne(run, means, lists, seen, archive, values, session);
        const failures = plan.tables.flatMap(({ error }) => error?.exit ?? []);
        statuses.push(...failures);
        totals.add(plan);
        const isSilent = quiet && failures.length === 0;
        await stream.tell(
          "plan",
          () => planJson(plan, session.toCopy),
          () => (isSilent ? "" : planText(plan, form)),
        );
      } catch (thrown) {
        session.signal.throwIfAborted();
        const error = RunvaultError.from(thrown).at({ instance: run.instanceId, run: run.runId });
        const status = session.failure(error);
        statuses.push(status);
        totals.addFailed();
        await stream.tell(
          "plan",
          () => failedPlanJson(run, error, status, session.toCopy),
          () => failedPlanText(run, error, form),
        );
        if (error.scope === "job") break;
      }
    }
  }
  await telling.notTried(runs.slice(tried));
  totals.addNotTried(runs.length - tried);
  const { fits, diskBytes, room } = totals;
  if (fits === false && room !== null) {
    const message = `the plan needs about ${byteText(diskBytes)}, but ${roomText(room)}`;
    const hint = "Free some space, or point --archive (RUNVAULT_ARCHIVE) at a larger disk.";
    const place = { file: values.archive };
    statuses.push(session.failure(new RunvaultError("storage_full", message, { place, hint })));
  }
  const status = worstExit(statuses);
  await stream.end(
    { exit: status, ...totals.counts(), ...totals.space() },
    (of) => ({
      exit: status,
      totals: totals.counts(),
      lists: of("list"),
      runs: of("plan"),
      notListed: of("not_listed"),
      notTried: of("not_tried"),
      ...totals.space(),
    }),
    () => (quiet ? "" : totals.text()),
  );
  return status;
}

async function planOne(
  run: RunToArchive,
  { gateway: source, clock, retry }: ArchiveMeans,
  lists: RunLists,
  seen: SeenSource,
  archive: Archive | null,
  values: ArchiveValues,
  { signal }: Session,
): Promise<RunPlan> {
  const settings = { ...defaultSettings, ...settingsOf(values, clock) };
  const { archive: folder, scratch, tables } = values;
  const means = { source, lists, seen, archive, clock, retry, signal };
  return await planRun({ ...means, folder, scratch, run, tables, settings });
}
