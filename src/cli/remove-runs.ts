import { type Archive, openArchive } from "../archive/archive.ts";
import { formerBytes } from "../archive/former-files.ts";
import { type FoundRun, foundRuns } from "../archive/found-runs.ts";
import type { Manifest } from "../archive/manifest.ts";
import { committedBytes } from "../archive/manifest-files.ts";
import { pendingWork } from "../archive/pending-work.ts";
import { removeRun, requireRemovable } from "../archive/remove.ts";
import { byteText } from "../model/byte-text.ts";
import { exit, RunvaultError, worstExit } from "../model/error.ts";
import { plural } from "../model/plural.ts";
import type { RunRef } from "../model/source.ts";
import { wallClock } from "../model/time.ts";
import { visible } from "../model/visible-text.ts";
import { killStep } from "./kill-step.ts";
import { grouped } from "./number-text.ts";
import { formatRun } from "./run-argument.ts";
import type { Session } from "./session.ts";
import { wrapLines } from "./wrap-lines.ts";

interface Values {
  readonly archive: string;
  readonly scratch?: string | undefined;
  readonly anyState: boolean;
  readonly dryRun: boolean;
}

/** A run to be removed, with the bytes of its files. */
interface Chosen extends RunRef {
  readonly bytes: number;
}

/** A run that is old enough, and stays. */
interface Spared extends Chosen {
  readonly state: string;
}

/** Removes the runs named, whatever their state. */
export async function removeNamed(
  named: readonly RunRef[],
  values: Values,
  session: Session,
): Promise<number> {
  const archive = await openArchive(values.archive, { scratch: values.scratch });
  const pending = await pendingBytes(archive);
  const chosen: Chosen[] = [];
  for (const run of named) {
    // one that cannot be read is removed all the same
    const manifest = await archive.manifest(run).catch(() => null);
    const committed = manifest === null ? 0 : await bytesOf(archive, manifest);
    chosen.push({ ...run, bytes: committed + (pending.get(formatRun(run)) ?? 0) });
  }
  return await removeChosen(archive, chosen, null, values, session);
}

/**
 * Removes the runs that ended so many milliseconds ago, of the instances named or of all. Only what is COMPLETE goes by
 * its age alone: a run that goes on, or of which rows are missing, may still be needed here.
 */
export async function removeOlder(
  ageMs: number,
  instances: readonly string[],
  values: Values,
  session: Session,
): Promise<number> {
  const archive = await openArchive(values.archive, { scratch: values.scratch });
  // throws where a folder is a link
  await archive.manifestFiles();
  const before = wallClock() - BigInt(ageMs) * 1_000_000n;
  const pending = await pendingBytes(archive);
  const chosen: Chosen[] = [];
  const spared: Spared[] = [];
  const statuses: number[] = [];
  const choices = [...new Set(instances)].map((instanceId) => ({ instanceId }));
  for await (const found of foundRuns(archive, choices)) {
    session.signal.throwIfAborted();
    const { manifest } = found;
    if (manifest === null) {
      statuses.push(session.failure(unreadable(found)));
      continue;
    }
    if (endOf(manifest) > before) continue;
    const { instanceId, runId } = manifest;
    const work = pending.get(formatRun(manifest));
    const run = { instanceId, runId, bytes: (await bytesOf(archive, manifest)) + (work ?? 0) };
    const state = work === undefined ? manifest.state : "pending";
    if (values.anyState || state === "COMPLETE") chosen.push(run);
    else spared.push({ ...run, state });
  }
  return worstExit([...statuses, await removeChosen(archive, chosen, spared, values, session)]);
}

/** When a run ended, in nanoseconds; where nothing says so, when it was last committed: it had not ended before. */
function endOf({ run, committedAt }: Manifest): bigint {
  if (run.ended !== null) return BigInt(run.ended);
  const committedMs = Date.parse(committedAt);
  // of a time that nobody can read nothing is old enough
  return Number.isNaN(committedMs) ? wallClock() : BigInt(committedMs) * 1_000_000n;
}

/** What goes from the disk with a committed run. */
async function bytesOf(archive: Archive, manifest: Manifest): Promise<number> {
  return committedBytes(manifest) + (await formerBytes(archive, manifest));
}

async function pendingBytes(archive: Archive): Promise<Map<string, number>> {
  return new Map((await pendingWork(archive)).map((work) => [formatRun(work), work.bytes]));
}

function unreadable({ file, damage }: FoundRun): RunvaultError {
  return new RunvaultError("archive_damaged", `${damage}; the age of its run is unknown`, {
    place: { file },
    hint: "Name the run to remove it; otherwise it is kept.",
  });
}

/** `spared` is null where none could be. */
async function removeChosen(
  archive: Archive,
  chosen: readonly Chosen[],
  spared: readonly Spared[] | null,
  { dryRun }: Values,
  session: Session,
): Promise<number> {
  const statuses: number[] = [];
  const done: Chosen[] = [];
  for (const run of chosen) {
    try {
      session.signal.throwIfAborted();
      if (dryRun) await requireRemovable(archive, run);
      else {
        const foreign = await removeRun(archive, run, { step: killStep(session.terminal.env) });
        for (const path of foreign) session.note(`kept ${path}: the archive did not make it`);
      }
      done.push(run);
    } catch (error) {
      session.signal.throwIfAborted();
      statuses.push(session.failure(error));
    }
  }
  const bytes = done.reduce((sum, run) => sum + run.bytes, 0);
  if (session.json) {
    const runs = dryRun ? { removed: [], toRemove: done } : { removed: done, toRemove: [] };
    await session.print(`${JSON.stringify({ dryRun, ...runs, bytes, spared: spared ?? [] }, null, 2)}\n`);
  } else {
    const verb = dryRun ? "would remove" : "removed";
    const lines = done.map((run) => `${verb} ${visible(formatRun(run))}  ${byteText(run.bytes)}\n`);
    const total = `${verb} ${grouped(done.length)} ${plural(done.length, "run")}, ${byteText(bytes)}\n`;
    const isOne = spared === null && chosen.length === 1;
    const text = `${lines.join("")}${isOne ? "" : total}${sparedText(spared ?? [], session)}`;
    await session.print(wrapLines(text, session.terminal.columns));
  }
  return statuses.length === 0 ? exit.done : worstExit(statuses);
}

/** The first few that stay, and how many do. */
function sparedText(spared: readonly Spared[], { paint }: Session): string {
  if (spared.length === 0) return "";
  const shown = spared.slice(0, 5).map((run) => `  ${visible(formatRun(run))}  ${paint(run.state)}\n`);
  const more = spared.length - shown.length;
  const count = `${grouped(spared.length)} old ${plural(spared.length, "run")}`;
  const [its, it] = spared.length === 1 ? ["its", "it"] : ["their", "them"];
  return `kept ${count} because of ${its} state; --any-state removes ${it} as well:\n${shown.join("")}${more === 0 ? "" : `  and ${grouped(more)} more\n`}`;
}
