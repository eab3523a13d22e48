import { join } from "node:path";
import { type Archive, openArchive } from "../../archive/archive.ts";
import { consistentRuns, type FoundRun } from "../../archive/manifest/found-runs.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { holdingsOf } from "../../archive/manifest/table-view.ts";
import { ownFoldersOf } from "../../archive/storage/own-names.ts";
import { lstatOrNull, requireRealFolder } from "../../archive/storage/real-folder.ts";
import { removeRun, requireRemovable } from "../../archive/upkeep/remove.ts";
import { entriesIn } from "../../archive/verify/verify-places.ts";
import { pendingWork } from "../../archive/write/pending-work.ts";
import { exit, RunvaultError, worstExit } from "../../model/error.ts";
import { tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { countText, plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import { wallClock } from "../../model/time.ts";
import { formatRun } from "../options/run-argument.ts";
import { grouped } from "../output/number-text.ts";
import { wrapLines } from "../output/wrap-lines.ts";
import type { Session } from "../process/session.ts";
import { killStep } from "./kill-step.ts";

interface Values {
  readonly archive: string;
  readonly scratch?: string | undefined;
  readonly anyState: boolean;
  readonly dryRun: boolean;
}

/** Clocks and time zones may be off by less. */
const nsPerDay = 86_400_000_000_000n;

/** A run that was removed, or would be, with the bytes of its files. */
interface Removed extends RunRef {
  readonly bytes: number;
}

/** A run that is old enough, and stays. */
interface Spared extends Removed {
  readonly state: string;
}

/** Removes the runs named, whatever their state. */
export async function removeNamed(
  named: readonly RunRef[],
  values: Values,
  session: Session,
): Promise<number> {
  const archive = await openArchive(values.archive, { scratch: values.scratch });
  return await removeChosen(archive, named, null, values, session);
}

/**
 * Removes the runs that ended so many milliseconds ago, of the instances named or of all. Only what is COMPLETE goes by
 * its age alone: a run that goes on, or of which rows are missing, may still be needed here. Of what cannot be read, or
 * contradicts itself, nothing is COMPLETE.
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
  const now = wallClock();
  const before = now - BigInt(ageMs) * 1_000_000n;
  const statuses: number[] = [];
  // a job refuses to remove anything where there is one
  const work = await pendingWork(archive, () => {});
  const pending = new Set(work.map(formatRun));
  const chosen: RunRef[] = [];
  const spared: Spared[] = [];
  let future = 0;
  const choices = [...new Set(instances)].map((instanceId) => ({ instanceId }));
  for await (const found of consistentRuns(archive, choices)) {
    session.signal.throwIfAborted();
    const { manifest } = found;
    if (manifest === null) {
      statuses.push(session.failure(unreadable(found)));
      continue;
    }
    const end = endOf(manifest);
    if (end > now + nsPerDay) future += 1;
    if (end > before) continue;
    const { instanceId, runId } = manifest;
    const run = { instanceId, runId };
    const state = pending.has(formatRun(manifest)) ? "pending" : manifest.state;
    if (values.anyState || state === "COMPLETE") chosen.push(run);
    else {
      try {
        spared.push({ ...run, bytes: await bytesOf(archive, run), state });
      } catch (error) {
        statuses.push(session.failure(error));
      }
    }
  }
  if (future > 0) {
    const [was, their] =
      future === 1 ? ["was", "its end or its rows are"] : ["were", "their ends or rows are"];
    session.note(
      `${countText(future, "run")} ${was} kept because ${their} in the future; name a run to remove it`,
    );
  }
  return worstExit([...statuses, await removeChosen(archive, chosen, spared, values, session)]);
}

/**
 * When a run ended, in nanoseconds: at the end that its gateway says, but no earlier than it started and than its newest
 * row. A gateway that says 1970 for want of an end makes no run old. Where it says no end, or nothing bears it out, when
 * the run was last committed.
 */
function endOf({ run, tables, committedAt }: Manifest): bigint {
  const held = Object.values(tables).flatMap(holdingsOf);
  const newest = held.flatMap(({ parquet }) => parquet.map(({ last }) => last.ts));
  const shown = [...(run.started === null ? [] : [run.started]), ...newest];
  if (run.ended !== null && shown.length > 0) {
    return [run.ended, ...shown].map(BigInt).reduce((a, b) => (a > b ? a : b));
  }
  const committedMs = Date.parse(committedAt);
  // of a time that nobody can read nothing is old enough
  return Number.isNaN(committedMs) ? wallClock() : BigInt(committedMs) * 1_000_000n;
}

/**
 * What goes from the disk with a run: the bytes of its files as they are, whatever a manifest says of them, and whether or
 * not there is one. Links in `tables/` are the same files again, and a journal is none that a commit takes up.
 */
async function bytesOf({ layout }: Archive, run: RunRef): Promise<number> {
  const linked = new Set<string>(tableNames.map((table) => layout.tableDir(table, run)));
  let bytes = 0;
  for (const { folder, isOwn } of ownFoldersOf(layout, run)) {
    if (linked.has(folder) || !(await requireRealFolder(layout, folder))) continue;
    for (const { name } of await entriesIn(folder)) {
      if (!isOwn(name) || name === "journal.ndjson") continue;
      const found = await lstatOrNull(join(folder, name));
      if (found?.isFile()) bytes += found.size;
    }
  }
  return bytes;
}

function unreadable({ damage }: FoundRun): RunvaultError {
  const { message, file } = damage!;
  return new RunvaultError("archive_damaged", `${message}; the age of its run is unknown`, {
    place: { file },
    hint: "Name the run to remove it; otherwise it is kept.",
  });
}

/** `spared` is null where none could be. */
async function removeChosen(
  archive: Archive,
  chosen: readonly RunRef[],
  spared: readonly Spared[] | null,
  { dryRun }: Values,
  session: Session,
): Promise<number> {
  const statuses: number[] = [];
  const done: Removed[] = [];
  for (const run of chosen) {
    try {
      session.signal.throwIfAborted();
      await requireRemovable(archive, run);
      const { instanceId, runId } = run;
      const removed = { instanceId, runId, bytes: await bytesOf(archive, run) };
      if (!dryRun) {
        const foreign = await removeRun(archive, run, { step: killStep(session.terminal.env) });
        for (const path of foreign) session.note(`kept ${path}: the archive did not make it`);
      }
      done.push(removed);
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
