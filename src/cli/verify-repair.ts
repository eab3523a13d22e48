import type { Archive } from "../archive/archive.ts";
import type { JobDuckDB } from "../archive/job-duckdb.ts";
import { lostFiles } from "../archive/lost-files.ts";
import { rebuildRun } from "../extract/rebuild-run.ts";
import { exit, RunvaultError } from "../model/error.ts";
import type { RunRef } from "../model/source.ts";
import { wallClock } from "../model/time.ts";
import { formatRun } from "./run-argument.ts";
import type { Session } from "./session.ts";
import { shellWord } from "./shell-word.ts";
import { version } from "./version.ts";

/** What became of a damaged run. */
export interface Repair {
  /** False where nothing could be made anew. */
  readonly changed: boolean;
  /** Buckets whose Parquet was made anew from their segments. */
  readonly buckets: number;
  /** Why that failed; null where it did not. */
  readonly error: { readonly code: string; readonly message: string } | null;
  /** The command that fetches what only a gateway has; null where nothing is to be fetched. */
  readonly archive: string | null;
  readonly exit: number;
}

/** Makes anew what can be made without a gateway: Parquet, from segments that are whole. */
export async function repairRun(
  archive: Archive,
  run: RunRef,
  duckdb: JobDuckDB,
  session: Session,
): Promise<Repair> {
  const { signal } = session;
  const tool = `runvault ${version()}`;
  try {
    const job = { archive, run, upTo: null, clock: wallClock, signal, tool, duckdb };
    const { changed, buckets } = await rebuildRun(job);
    return { changed, buckets, error: null, archive: await commandFor(archive, run), exit: exit.done };
  } catch (thrown) {
    signal.throwIfAborted();
    const error = RunvaultError.from(thrown).at({ instance: run.instanceId, run: run.runId });
    const { code, message } = error;
    return {
      changed: false,
      buckets: 0,
      error: { code, message },
      archive: null,
      exit: session.failure(error),
    };
  }
}

async function commandFor(archive: Archive, run: RunRef): Promise<string | null> {
  const manifest = await archive.manifest(run);
  if (manifest === null || (await lostFiles(archive.layout, manifest)).length === 0) return null;
  const gateway = /^https?:\/\//.test(manifest.source) ? shellWord(manifest.source) : "URL";
  return `runvault archive --archive ${shellWord(archive.dir)} --gateway ${gateway} ${shellWord(formatRun(run))}`;
}
