import { type Archive, findArchive } from "../../archive/archive.ts";
import { type KnownSource, knownSource } from "../../archive/sources.ts";
import type { RetryPolicy } from "../../model/retry/retry-policy.ts";
import type { HistorySource, RunRef } from "../../model/source.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { recogniseSource } from "../run/recognise-source.ts";
import { finishedRuns, type RunToArchive } from "./finished-runs.ts";
import { firstOfMany } from "./first-of-many.ts";
import { foreignInstances } from "./foreign-instances.ts";
import type { ListFinding } from "./list-finding.ts";
import { type AskedTypes, refuseOtherTypes } from "./refuse-other-types.ts";
import { RunLists } from "./run-lists.ts";

/** What to archive: the named runs, or every finished run of the named instances (of all when undefined). */
export type ArchiveTarget =
  | { readonly kind: "runs"; readonly runs: readonly RunRef[] }
  | { readonly kind: "finished"; readonly instances: readonly string[] | undefined };

/** How a job chooses its runs. */
export interface RunChoosing {
  readonly source: HistorySource;
  /** The archive's folder. */
  readonly folder: string;
  readonly scratch?: string | undefined;
  readonly target: ArchiveTarget;
  /** The source's own words for a run that has ended. Default: those that the archive remembers. */
  readonly finishedStatus?: readonly string[] | undefined;
  /** Types of exact columns: a new archive gets them, an existing one must have them. */
  readonly types: AskedTypes;
  /** The operator says that the source has moved: this address belongs to the source that runs were archived from. */
  readonly isMoved: boolean;
  /** Only plans: nothing is looked up or remembered to recognise the source. */
  readonly isDry: boolean;
  /** Runs that ended before this are settled. */
  readonly settled: () => Nanoseconds;
  readonly retry: RetryPolicy;
  readonly signal: AbortSignal;
}

export interface ChosenRuns {
  /** Null if there is none yet. */
  readonly archive: Archive | null;
  /** What the archive remembers of the source. */
  readonly known: KnownSource | null;
  readonly lists: RunLists;
  /** In the order in which they are to be archived. */
  readonly runs: readonly RunToArchive[];
  /** Findings about the lists that named them. */
  readonly findings: readonly ListFinding[];
}

/** The runs that a job archives. Throws `invalid_argument` if the archive does not have the types asked for. */
export async function chooseRuns(choosing: RunChoosing): Promise<ChosenRuns> {
  const { source, target, isMoved, isDry, settled, retry, signal } = choosing;
  const archive = await findArchive(choosing.folder, choosing);
  if (archive !== null && !isDry) {
    refuseOtherTypes(archive, choosing.types);
    const lists = new RunLists(source, { settled, finishedStatus: choosing.finishedStatus ?? [] });
    await recogniseSource({ archive, source, lists, isMoved, retry, signal });
  }
  const known = archive === null ? null : await knownSource(archive, source.label);
  const finishedStatus = choosing.finishedStatus ?? known?.finishedStatus ?? [];
  const lists = new RunLists(source, { settled, finishedStatus, marksFinal: known?.marksFinal });
  // a plan has not tried to recognise the source
  const foreign = async (runs: readonly RunRef[]) =>
    archive === null || known === null || isDry ? [] : await foreignInstances(archive, runs, known.addresses);
  if (target.kind === "runs") {
    const runs = target.runs.map((run) => ({ ...run, listed: true }));
    return { archive, known, lists, runs, findings: await foreign(runs) };
  }
  const held = archive === null || known === null ? null : { archive, addresses: known.addresses };
  const { runs, findings } = await finishedRuns(lists, target.instances, held, signal);
  return { archive, known, lists, runs, findings: [...firstOfMany(findings), ...(await foreign(runs))] };
}
