import { type Archive, openArchive } from "../../archive/archive.ts";
import type { FoundRun } from "../../archive/manifest/found-runs.ts";
import { oldRuns } from "../../archive/upkeep/old-runs.ts";
import { removeRun, requireRemovable } from "../../archive/upkeep/remove.ts";
import { runBytes } from "../../archive/upkeep/run-bytes.ts";
import { exit, RunvaultError, worstExit } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { grouped } from "../../model/text/number-text.ts";
import { countText, plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import { wrapLines } from "../output/wrap-lines.ts";
import type { Session } from "../process/session.ts";
import { killStep } from "./kill-step.ts";

interface Values {
  readonly archive: string;
  readonly scratch?: string | undefined;
  readonly anyState: boolean;
  readonly dryRun: boolean;
}

/** A run that was removed, or would be, with the bytes of its files. */
interface Removed extends RunRef {
  readonly bytes: number;
}

/** A run that is old enough but is kept. */
interface Spared extends Removed {
  readonly state: string;
}

/** Removes the named runs, whatever their state. */
export async function removeNamed(
  named: readonly RunRef[],
  values: Values,
  session: Session,
): Promise<number> {
  const archive = await openArchive(values.archive, { scratch: values.scratch });
  return await removeChosen(archive, named, null, values, session);
}

/** Removes the runs that ended so many milliseconds ago, of the named instances or of all, as `oldRuns` chooses. */
export async function removeOlder(
  ageMs: number,
  instances: readonly string[],
  values: Values,
  session: Session,
): Promise<number> {
  const archive = await openArchive(values.archive, { scratch: values.scratch });
  const statuses: number[] = [];
  const chosen: RunRef[] = [];
  const spared: Spared[] = [];
  let future = 0;
  for await (const old of oldRuns(archive, { ageMs, instances, ...values }, session.signal)) {
    if (old.kind === "remove") chosen.push(old.run);
    else if (old.kind === "unreadable") statuses.push(session.failure(unreadable(old.found)));
    else if (old.kind === "future") future += 1;
    else {
      try {
        spared.push({ ...old.run, bytes: await runBytes(archive, old.run), state: old.state });
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

function unreadable({ damage }: FoundRun): RunvaultError {
  const { message, file } = damage!;
  return new RunvaultError("archive_damaged", `${message}; the age of its run is unknown`, {
    place: { file },
    hint: "Name the run to remove it; otherwise it is kept.",
  });
}

/** `spared` is null if none could be. */
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
      const removed = { instanceId, runId, bytes: await runBytes(archive, run) };
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

/** The first few kept runs, and how many there are. */
function sparedText(spared: readonly Spared[], { paint }: Session): string {
  if (spared.length === 0) return "";
  const shown = spared.slice(0, 5).map((run) => `  ${visible(formatRun(run))}  ${paint(run.state)}\n`);
  const more = spared.length - shown.length;
  const count = `${grouped(spared.length)} old ${plural(spared.length, "run")}`;
  const [its, it] = spared.length === 1 ? ["its", "it"] : ["their", "them"];
  return `kept ${count} because of ${its} state; --any-state removes ${it} as well:\n${shown.join("")}${more === 0 ? "" : `  and ${grouped(more)} more\n`}`;
}
