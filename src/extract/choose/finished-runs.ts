import { dirname } from "node:path";
import type { Archive } from "../../archive/archive.ts";
import { lostFiles } from "../../archive/read/lost-files.ts";
import { RunvaultError } from "../../model/error.ts";
import type { RunRef } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";
import { Turns } from "../../model/turns.ts";
import { instanceNotFound } from "../../model/usual-errors.ts";
import { idsText, type ListFinding, listDoubt, listFailure, listNote } from "./list-finding.ts";
import { concernsAll, type NamedInstance, namedBeside, namedRuns } from "./named-runs.ts";
import type { RunLists } from "./run-lists.ts";

/** A run to archive. */
export interface RunToArchive extends RunRef {
  /** False for a run that is unproven or damaged in the archive and that nothing at the source names any more. */
  readonly listed: boolean;
}

export interface FinishedRuns {
  readonly runs: readonly RunToArchive[];
  /** The instances that the source names, with all their runs, including those that have not ended. */
  readonly instances: readonly NamedInstance[];
  readonly findings: readonly ListFinding[];
}

/** Archived runs of an instance that its source no longer lists. */
interface Unlisted {
  /** Runs that are not COMPLETE, or have lost files since. */
  readonly unproven: readonly string[];
  readonly complete: readonly string[];
  /** When the earliest began; undefined if no run says. */
  readonly earliest: bigint | undefined;
}

/** An archive, with the addresses by which it knows the source: runs of other instances may come from another source. */
export interface HeldRuns {
  readonly archive: Archive;
  readonly addresses: readonly string[];
}

/**
 * The finished runs of some or all instances: those that the source names anywhere, and those that are unproven or
 * incomplete in the archive. A list is compared with everything else that names runs; a run that it may lack is a finding
 * with an error.
 *
 * A gateway that drops old runs is fine: archived COMPLETE runs may be gone there.
 */
export async function finishedRuns(
  lists: RunLists,
  only: readonly string[] | undefined,
  there: HeldRuns | null,
  signal?: AbortSignal,
): Promise<FinishedRuns> {
  const named = await namedRuns(lists, only, signal);
  const findings = [...named.findings];
  const runs: RunToArchive[] = [];
  const held = await HeldFiles.list(there?.archive ?? null, findings);

  const leave = (instanceId: string, { unproven, complete }: Unlisted) => {
    for (const runId of unproven) runs.push({ instanceId, runId, listed: false });
    if (complete.length === 0) return;
    const text = `archived COMPLETE and no longer listed: ${idsText(complete)}`;
    findings.push({ ...listNote(instanceId, complete, text), lasts: true });
  };
  const instances: NamedInstance[] = [];
  const take = async (instance: NamedInstance) => {
    const { instanceId } = instance;
    instances.push(instance);
    for (const remark of await remarksOf(instance)) findings.push(remark);
    for (const { run, finished } of instance.runs) {
      if (finished) runs.push({ instanceId, runId: run.runId, listed: true });
    }
    const unlisted = (await held.except(instance)).get(instanceId) ?? nothing;
    for (const cut of cutOf(instance, unlisted, held)) findings.push(cut);
    leave(instanceId, unlisted);
  };

  for (const instance of named.instances) await take(instance);
  for (const instanceId of named.unknown) {
    const unlisted = (await held.except({ instanceId, names: new Set() })).get(instanceId);
    if (unlisted === undefined) findings.push(listFailure(instanceNotFound(instanceId), instanceId, []));
    else leave(instanceId, unlisted);
  }
  // a failed list of instances may have named any of them
  if (only !== undefined || there === null || named.instancesFailed) return { runs, instances, findings };
  const known = [...named.instances.map(({ instanceId }) => instanceId), ...named.failed];
  for await (const [instanceId, unlisted] of held.besides(known, there.addresses)) {
    try {
      if (known.length === 0) findings.push(emptyList(instanceId));
      const mayBeThere = named.instancesMayBeCut || unlisted.unproven.length > 0;
      const instance = mayBeThere ? await namedBeside(lists, instanceId, findings, signal) : null;
      if (instance === null) leave(instanceId, unlisted);
      else await take(instance);
    } catch (thrown) {
      if (concernsAll(thrown)) throw thrown;
      findings.push(listFailure(thrown, instanceId, []));
    }
  }
  return { runs, instances, findings };
}

/** An empty list of instances proves nothing if there were some before. */
function emptyList(instanceId: string): ListFinding {
  return listDoubt(
    instanceId,
    [],
    "the gateway lists no instances at all, but runs of this one were archived from it",
    "Check --gateway and --token-file, and that the gateway can reach its store.",
  );
}

/** Findings about the runs' ends: a run that may or may not have ended is a doubt, the rest are notes. */
async function remarksOf({ instanceId, runs }: NamedInstance): Promise<ListFinding[]> {
  const findings: ListFinding[] = [];
  const notes = new Map<string, string[]>();
  const turns = new Turns();
  for (const { run, standing, finished } of runs) {
    if (turns.isDue(0)) await turns.next();
    const { remark, unknown } = standing;
    if (remark === null) continue;
    if (!unknown || finished) {
      const runIds = notes.get(remark) ?? [];
      notes.set(remark, runIds);
      runIds.push(run.runId);
      continue;
    }
    findings.push(
      listDoubt(
        instanceId,
        [run.runId],
        `${run.runId}: ${remark}, and nothing else says whether it has ended: it was not archived`,
        `If this status means that a run has ended, set --finished-status ${run.status}; or name the run as INSTANCE/RUN.`,
      ),
    );
  }
  for (const [remark, runIds] of notes)
    findings.push(listNote(instanceId, runIds, `${idsText(runIds)}: ${remark}`));
  return findings;
}

/**
 * A list that may have been cut still has every new run if it reaches back to an archived one. If it does not, and older
 * runs are archived, those in between may be missing.
 */
function cutOf(instance: NamedInstance, { earliest }: Unlisted, held: HeldFiles): ListFinding[] {
  if (!instance.mayBeCut) return [];
  const { instanceId, runs } = instance;
  const ended = runs.filter(({ finished, run }) => finished && run.started !== undefined);
  if (ended.length === 0) return [];
  const oldest = ended.reduce((a, b) => (b.run.started! < a.run.started! ? b : a)).run;
  if (held.has(oldest)) return [];
  const text = `the list of ${countText(runs.length, "run")} may have been truncated, and no other list has the same runs`;
  if (earliest === undefined || earliest >= oldest.started!) return [listNote(instanceId, [], text)];
  return [
    listDoubt(
      instanceId,
      [],
      `${text}: runs between those archived before and ${oldest.runId} may be missing`,
      "Name the missing runs as INSTANCE/RUN, or archive often enough to see each run while it is listed.",
    ),
  ];
}

const nothing: Unlisted = { unproven: [], complete: [], earliest: undefined };

/** An archive's manifests by instance folder; read one at a time, and only when asked for. */
class HeldFiles {
  readonly #archive: Archive | null;
  readonly #folders: ReadonlyMap<string, readonly string[]>;
  readonly #findings: ListFinding[];

  private constructor(
    archive: Archive | null,
    folders: ReadonlyMap<string, readonly string[]>,
    findings: ListFinding[],
  ) {
    this.#archive = archive;
    this.#folders = folders;
    this.#findings = findings;
  }

  /** A manifest that cannot be read is a finding. */
  static async list(archive: Archive | null, findings: ListFinding[]): Promise<HeldFiles> {
    const files = (await archive?.manifestFiles()) ?? [];
    return new HeldFiles(
      archive,
      Map.groupBy(files, (file) => dirname(file)),
      findings,
    );
  }

  /** Whether the archive has the run, in any state. */
  has(run: RunRef): boolean {
    const file = this.#archive?.layout.manifestFile(run);
    return file !== undefined && this.#folders.get(dirname(file))?.includes(file) === true;
  }

  /** The archived runs of an instance, by its id, except the named ones. */
  async except({
    instanceId,
    names,
  }: Pick<NamedInstance, "instanceId" | "names">): Promise<ReadonlyMap<string, Unlisted>> {
    const files = this.#folders.get(this.#folderOf(instanceId)) ?? [];
    const named = new Set(
      await new Turns().map(names, (runId) => this.#archive?.layout.manifestFile({ instanceId, runId })),
    );
    return await this.#read(files.filter((file) => !named.has(file)));
  }

  /** The archived runs of other instances, by their ids, that came from these addresses. */
  async *besides(
    known: readonly string[],
    addresses: readonly string[],
  ): AsyncGenerator<readonly [string, Unlisted]> {
    const folders = new Set(known.map((instanceId) => this.#folderOf(instanceId)));
    for (const [folder, files] of this.#folders) {
      if (!folders.has(folder)) yield* await this.#read(files, addresses);
    }
  }

  #folderOf(instanceId: string): string {
    return dirname(this.#archive?.layout.manifestFile({ instanceId, runId: "-" }) ?? "");
  }

  async #read(files: readonly string[], addresses?: readonly string[]): Promise<Map<string, Unlisted>> {
    const found = new Map<string, Unlisted>();
    for (const file of files) {
      try {
        const manifest = await this.#archive!.manifestIn(file);
        if (manifest === null || addresses?.includes(manifest.source) === false) continue;
        const { instanceId, runId, state, run } = manifest;
        const isWhole = state === "COMPLETE" && (await lostFiles(this.#archive!, manifest)).length === 0;
        const { unproven, complete, earliest } = found.get(instanceId) ?? nothing;
        const started = run.started === null ? undefined : BigInt(run.started);
        found.set(instanceId, {
          unproven: isWhole ? unproven : [...unproven, runId],
          complete: isWhole ? [...complete, runId] : complete,
          earliest:
            started === undefined || (earliest !== undefined && earliest <= started) ? earliest : started,
        });
      } catch (thrown) {
        // a damaged manifest affects only its own run
        const error = RunvaultError.from(thrown);
        if (error.scope === "job") throw error;
        this.#findings.push(listFailure(error, null, []));
      }
    }
    return found;
  }
}
