import type { Archive } from "../../archive/archive.ts";
import type { RunToArchive } from "../../extract/choose/finished-runs.ts";
import type { ListFinding } from "../../extract/choose/list-finding.ts";
import type { RunLists } from "../../extract/choose/run-lists.ts";
import { roomText } from "../../extract/fetch/disk-need.ts";
import { planRuns } from "../../extract/plan/plan-runs.ts";
import { defaultSettings } from "../../extract/run/archive-run.ts";
import { RunvaultError, worstExit } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { byteText } from "../../model/text/byte-text.ts";
import type { Session } from "../process/session.ts";
import { failedPlanJson, failedPlanText, planJson, planText } from "./archive-plan-report.ts";
import { PlanTotals } from "./archive-plan-totals.ts";
import { type ArchiveMeans, settingsOf } from "./archive-settings.ts";
import type { ArchiveTelling } from "./archive-telling.ts";
import type { ArchiveValues } from "./archive-values.ts";
import { exitsOf } from "./list-findings.ts";

/** Plans the runs one after another and prints each plan and the totals. Fetches and writes nothing. */
export async function tellPlans(
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
  const settings = { ...defaultSettings, ...settingsOf(values, means.clock) };
  const { gateway: source, clock, retry } = means;
  const { archive: folder, scratch, tables } = values;
  const { signal } = session;
  const left = await (async () => {
    using progress = session.progress();
    const onRun = (run: RunRef, nth: number) => progress.run(formatRun(run), nth, runs.length);
    const how = { source, lists, clock, retry, signal, settings, tables, folder, scratch };
    const planning = planRuns({ archive, runs, onRun, ...how });
    for (;;) {
      const step = await planning.next();
      if (step.done === true) return step.value;
      const { run, ...planned } = step.value;
      if (planned.kind === "not-listed") {
        totals.addNotListed();
        await telling.notListed(run);
      } else if (planned.kind === "plan") {
        const { plan } = planned;
        const failures = plan.tables.flatMap(({ error }) => error?.exit ?? []);
        statuses.push(...failures);
        totals.add(plan);
        const isSilent = quiet && failures.length === 0;
        await stream.tell(
          "plan",
          () => planJson(plan, session.toCopy),
          () => (isSilent ? "" : planText(plan, form)),
        );
      } else {
        const { error } = planned;
        const status = session.failure(error);
        statuses.push(status);
        totals.addFailed();
        await stream.tell(
          "plan",
          () => failedPlanJson(run, error, status, session.toCopy),
          () => failedPlanText(run, error, form),
        );
      }
    }
  })();
  await telling.notTried(left);
  totals.addNotTried(left.length);
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
