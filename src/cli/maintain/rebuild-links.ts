import { type Archive, openArchive } from "../../archive/archive.ts";
import { lockRun } from "../../archive/lock.ts";
import { linkedParquet, refreshTables } from "../../archive/write/commit.ts";
import { RunvaultError, worstExit } from "../../model/error.ts";
import { tableNames } from "../../model/profile/table.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { grouped } from "../../model/text/number-text.ts";
import { countText, plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import { manifestsOf } from "../list/manifests-of.ts";
import type { Session } from "../process/session.ts";

interface Values {
  readonly archive: string;
  readonly scratch?: string | undefined;
}

/** A run's links, and how many were missing. */
interface Linked extends RunRef {
  readonly links: number;
  readonly made: number;
}

/** Recreates the links in `tables/` for the named runs, or all, from manifests alone. */
export async function rebuildLinks(
  runs: readonly RunRef[],
  values: Values,
  session: Session,
): Promise<number> {
  const archive = await openArchive(values.archive, { scratch: values.scratch });
  const named = (await manifestsOf(archive, runs)).map(({ instanceId, runId }) => ({ instanceId, runId }));
  const linked: Linked[] = [];
  const statuses: number[] = [];
  for (const run of named) {
    session.signal.throwIfAborted();
    try {
      const one = { ...run, ...(await linksOf(archive, run)) };
      linked.push(one);
      if (!session.json && one.made > 0) await session.print(lineOf(one));
    } catch (thrown) {
      session.signal.throwIfAborted();
      const error = RunvaultError.from(thrown).at({ instance: run.instanceId, run: run.runId });
      statuses.push(session.failure(error));
      if (error.scope === "job") break;
    }
  }
  const status = worstExit(statuses);
  const made = linked.reduce((sum, run) => sum + run.made, 0);
  await session.print(
    session.json
      ? `${JSON.stringify({ exit: status, made, runs: linked }, null, 2)}\n`
      : `${grouped(made)} ${plural(made, "link")} made, of ${countText(linked.length, "run")}\n`,
  );
  return status;
}

async function linksOf(archive: Archive, run: RunRef): Promise<Pick<Linked, "links" | "made">> {
  await using _lock = await lockRun(archive.layout, run);
  const manifest = await archive.manifest(run);
  // removed since it was listed
  if (manifest === null) return { links: 0, made: 0 };
  const made = await refreshTables(archive, manifest, true);
  return { links: tableNames.flatMap((name) => linkedParquet(manifest, name)).length, made };
}

/** Empty for a run whose links are all there: after a restore that is most of them. */
function lineOf({ links, made, ...run }: Linked): string {
  return `${visible(formatRun(run))}  ${made} of ${countText(links, "link")} made\n`;
}
