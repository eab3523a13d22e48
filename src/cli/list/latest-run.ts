import { openArchive } from "../../archive/archive.ts";
import { consistentRuns } from "../../archive/manifest/found-runs.ts";
import type { ArchiveTarget } from "../../extract/choose/choose-runs.ts";
import { namedRuns } from "../../extract/choose/named-runs.ts";
import { RunLists } from "../../extract/choose/run-lists.ts";
import { formatRun, isLatest, latestRun } from "../../model/run-argument.ts";
import type { HistorySource, RunRef } from "../../model/source.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { instanceNotArchived, instanceNotFound, runNotFound } from "../../model/usual-errors.ts";
import type { Session } from "../process/session.ts";

/** A run, and when it began where that is known. */
interface Begun {
  readonly run: RunRef;
  readonly began: bigint | undefined;
}

/** The run of an instance that began last of those in the archive. Throws `not_archived` where it has none. */
export async function latestInArchive(instanceId: string, folder: string, session: Session): Promise<RunRef> {
  const runs: Begun[] = [];
  for await (const { run, manifest } of consistentRuns(await openArchive(folder), [{ instanceId }])) {
    const { started = null, ended = null } = manifest?.run ?? {};
    const began = started ?? ended;
    runs.push({ run, began: began === null ? undefined : BigInt(began) });
  }
  return told(latestOf(runs) ?? raise(instanceNotArchived(instanceId)), session);
}

/** A target with the run that began last, by the source's lists, in the place of each INSTANCE/latest. */
export async function latestAtSource(
  target: ArchiveTarget,
  source: HistorySource,
  settled: () => Nanoseconds,
  session: Session,
): Promise<ArchiveTarget> {
  if (target.kind !== "runs" || !target.runs.some(isLatest)) return target;
  const lists = new RunLists(source, { settled, finishedStatus: [] });
  const ids = new Set(target.runs.filter(isLatest).map(({ instanceId }) => instanceId));
  const { instances, unknown, findings } = await namedRuns(lists, [...ids], session.signal);
  for (const id of unknown) throw instanceNotFound(id);
  const runs = target.runs.map((asked) => {
    if (!isLatest(asked)) return asked;
    const { instanceId } = asked;
    const listed = instances.find((instance) => instance.instanceId === instanceId)?.runs ?? [];
    const latest = latestOf(listed.map(({ run }) => ({ run, began: run.started })));
    const failure = findings.find(({ error }) => error !== null)?.error;
    return told(latest ?? raise(failure ?? runNotFound({ instanceId, runId: "" })), session);
  });
  return { kind: "runs", runs };
}

/** Of runs that began at the same time, or nobody knows when, the last in the list. One whose id is the word is itself. */
function latestOf(runs: readonly Begun[]): RunRef | null {
  const exact = runs.find(({ run }) => run.runId === latestRun);
  if (exact !== undefined) return exact.run;
  const last = runs.reduce<Begun | null>(
    (best, one) => (best !== null && (one.began ?? -1n) < (best.began ?? -1n) ? best : one),
    null,
  );
  return last?.run ?? null;
}

function told({ instanceId, runId }: RunRef, session: Session): RunRef {
  const run = { instanceId, runId };
  if (runId !== latestRun)
    session.note(`${formatRun({ instanceId, runId: latestRun })} is ${formatRun(run)}`);
  return run;
}

function raise(error: Error): never {
  throw error;
}
