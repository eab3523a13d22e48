import { openArchive } from "../../archive/archive.ts";
import { consistentRuns } from "../../archive/manifest/found-runs.ts";
import type { ArchiveTarget } from "../../extract/choose/choose-runs.ts";
import { type Begun, latestListed, latestOf } from "../../extract/choose/latest-listed.ts";
import { RunLists } from "../../extract/choose/run-lists.ts";
import { isLatest, latestText } from "../../model/run-argument.ts";
import type { HistorySource, RunRef } from "../../model/source.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { instanceNotArchived } from "../../model/usual-errors.ts";
import type { Session } from "../process/session.ts";

/** The run of an instance that began last of those in the archive. Throws `not_archived` where it has none. */
export async function latestInArchive(instanceId: string, folder: string, session: Session): Promise<RunRef> {
  const runs: Begun[] = [];
  for await (const { run, manifest } of consistentRuns(await openArchive(folder), [{ instanceId }])) {
    const { started = null, ended = null } = manifest?.run ?? {};
    const began = started ?? ended;
    runs.push({ run, began: began === null ? undefined : BigInt(began) });
  }
  const latest = latestOf(runs);
  if (latest === null) throw instanceNotArchived(instanceId);
  return told({ instanceId, runId: latest.runId }, session);
}

/** Replaces each INSTANCE/latest with the run that began last by the source's lists. */
export async function latestAtSource(
  target: ArchiveTarget,
  source: HistorySource,
  settled: () => Nanoseconds,
  session: Session,
): Promise<ArchiveTarget> {
  if (target.kind !== "runs" || !target.runs.some(isLatest)) return target;
  const lists = new RunLists(source, { settled, finishedStatus: [] });
  const runs: RunRef[] = [];
  for (const asked of target.runs) {
    runs.push(
      isLatest(asked) ? told(await latestListed(lists, asked.instanceId, session.signal), session) : asked,
    );
  }
  return { kind: "runs", runs };
}

function told(run: RunRef, session: Session): RunRef {
  if (!isLatest(run)) session.note(latestText(run));
  return run;
}
