import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { z } from "zod";
import type { Archive } from "../../archive/archive.ts";
import type { Layout } from "../../archive/layout.ts";
import { mostBytes, readArchiveText } from "../../archive/storage/archive-file.ts";
import { replaceFile } from "../../archive/storage/fsync-files.ts";
import { permissionsAt } from "../../archive/storage/permissions.ts";
import { makeRealFolder, requireRealFolder } from "../../archive/storage/real-folder.ts";
import type { Step } from "../../archive/write/run-journal.ts";
import { parseJson } from "../../model/outside-json.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";

const recordSchema = z.strictObject({
  format: z.literal(1),
  startedAt: z.string(),
  runs: z.array(
    z.strictObject({ instanceId: z.string(), runId: z.string(), generation: z.int().positive() }),
  ),
});

/** The plan of a rebuild: the runs, each with the generation up to which its Parquet is rebuilt. */
export type RebuildRecord = z.output<typeof recordSchema>;

/** Identifies a rebuild: the same command continues the same record. */
export interface RebuildScope {
  /** The runs that were named; empty for all. */
  readonly runs: readonly RunRef[];
  readonly tables: readonly TableName[] | undefined;
  /** Another version of this program may write different Parquet. */
  readonly tool: string;
}

/**
 * The record of an interrupted rebuild, or a new one of the runs as they are now, on disk. File names show which
 * buckets are done. Runs that are new, or that other jobs have committed since, are rebuilt as they are now.
 */
export async function openRecord(
  archive: Archive,
  scope: RebuildScope,
  now: { readonly startedAt: string; readonly runs: RebuildRecord["runs"] },
  step: Step,
): Promise<{ readonly record: RebuildRecord; readonly resumed: boolean }> {
  const file = fileOf(archive, scope);
  await makeRealFolder(archive.layout, archive.layout.jobsDir);
  const found = await readRecord(archive.layout, file);
  const record: RebuildRecord =
    found === null ? { format: 1, ...now } : { ...found, runs: stillHolding(found.runs, now.runs) };
  const { file: mode } = await permissionsAt(archive.layout, file);
  await replaceFile(file, Buffer.from(`${JSON.stringify(record, null, 1)}\n`), mode);
  if (found === null) step("rebuild-recorded");
  return { record, resumed: found !== null };
}

/** The runs as they are now; those that only the rebuild itself has committed since, as they were when it began. */
function stillHolding(begun: RebuildRecord["runs"], now: RebuildRecord["runs"]): RebuildRecord["runs"] {
  return now.map((run) => {
    const was = begun.find(({ instanceId, runId }) => instanceId === run.instanceId && runId === run.runId);
    // a rebuild commits a run once; later generations come from other jobs
    const own = was !== undefined && was.generation <= run.generation && run.generation <= was.generation + 1;
    return own ? was : run;
  });
}

/** Removes the record of a finished rebuild: the same command starts over. */
export async function removeRecord(archive: Archive, scope: RebuildScope): Promise<void> {
  if (await requireRealFolder(archive.layout, archive.layout.jobsDir))
    await rm(fileOf(archive, scope), { force: true });
}

function fileOf(archive: Archive, { runs, tables, tool }: RebuildScope): string {
  const named = runs.map(({ instanceId, runId }) => [instanceId, runId]).sort();
  const text = JSON.stringify([named, tables === undefined ? null : [...tables].sort(), tool]);
  return archive.layout.jobFile(`rebuild-${createHash("sha256").update(text).digest("hex").slice(0, 16)}`);
}

async function readRecord(layout: Layout, file: string): Promise<RebuildRecord | null> {
  const text = await readArchiveText(layout, file, mostBytes.job);
  if (text === null) return null;
  try {
    const parsed = recordSchema.safeParse(parseJson(text));
    // without a record, only the list of finished runs is lost
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}
