import type { Archive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { lostFiles } from "../../archive/read/lost-files.ts";
import type { JobDuckDB } from "../../duckdb/job-duckdb.ts";
import { rebuildRun } from "../../extract/rebuild/rebuild-run.ts";
import { exit, RunvaultError } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { wallClock } from "../../model/time.ts";
import { version } from "../../model/version.ts";
import type { CommandToCopy } from "../output/command-to-copy.ts";
import type { Session } from "../process/session.ts";

/** What became of a damaged run. */
export interface Repair {
  /** False where nothing could be made anew. */
  readonly changed: boolean;
  /** Buckets whose Parquet was made anew from their segments. */
  readonly buckets: number;
  /** Why that failed; null where it did not. */
  readonly error: { readonly code: string; readonly message: string; readonly hint: string | null } | null;
  /** Whether files are lost that nothing here can make anew. */
  readonly lost: boolean;
  /** The command that fetches what only a gateway has; null where nothing is lost, or the gateway has not the run either. */
  readonly archive: string | null;
  readonly exit: number;
}

/** Makes anew what can be made without a gateway: Parquet, from segments that are whole. */
export async function repairRun(
  archive: Archive,
  run: RunRef,
  duckdb: JobDuckDB,
  command: CommandToCopy,
  session: Session,
): Promise<Repair> {
  const { signal } = session;
  const tool = `runvault ${version()}`;
  try {
    const job = { archive, run, upTo: null, clock: wallClock, signal, tool, duckdb };
    const { changed, buckets } = await rebuildRun(job);
    return {
      changed,
      buckets,
      error: null,
      ...(await lossOf(archive, run, () => true, command)),
      exit: exit.done,
    };
  } catch (thrown) {
    signal.throwIfAborted();
    const error = RunvaultError.from(thrown).at({ instance: run.instanceId, run: run.runId });
    const { code, message, hint = null } = error;
    // what only kept the repair from beginning has its own remedy, which comes first
    const isDamage = code === "archive_damaged";
    const isLoss = (file: string) => !file.endsWith(".parquet");
    return {
      changed: false,
      buckets: 0,
      error: { code, message, hint },
      ...(isDamage ? await lossOf(archive, run, isLoss, command) : { lost: false, archive: null }),
      exit: session.failure(error),
    };
  }
}

/** What is lost of a run, of the files that count. */
async function lossOf(
  archive: Archive,
  run: RunRef,
  counts: (file: string) => boolean,
  command: CommandToCopy,
): Promise<Pick<Repair, "lost" | "archive">> {
  const manifest = await archive.manifest(run);
  const files = manifest === null ? [] : await lostFiles(archive, manifest);
  const lost = files.some(({ file }) => counts(file));
  // the operator closes what the gateway does not know any more
  const isThere = lost && manifest !== null && manifest.closedAt === null;
  return { lost, archive: isThere ? fetching(manifest, command) : null };
}

function fetching(manifest: Manifest, command: CommandToCopy): string {
  const gateway = /^https?:\/\//.test(manifest.source) ? manifest.source : "URL";
  return command("archive", "--gateway", gateway, formatRun(manifest));
}
