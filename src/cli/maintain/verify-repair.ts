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

/** The outcome for a damaged run. */
export interface Repair {
  /** False if nothing could be rebuilt. */
  readonly changed: boolean;
  /** Buckets whose Parquet was rebuilt from their segments. */
  readonly buckets: number;
  /** Why that failed; null if it did not. */
  readonly error: { readonly code: string; readonly message: string; readonly hint: string | null } | null;
  /** Whether files are lost that cannot be rebuilt here. */
  readonly lost: boolean;
  /** The command that fetches what only a gateway has; null if nothing is lost, or the gateway has no such run. */
  readonly archive: string | null;
  readonly exit: number;
}

/** Rebuilds what needs no gateway: Parquet, from intact segments. */
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
    // an error that only kept the repair from starting has its own remedy, which comes first
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

/** What a run has lost of its current files. */
async function lossOf(
  archive: Archive,
  run: RunRef,
  counts: (file: string) => boolean,
  command: CommandToCopy,
): Promise<Pick<Repair, "lost" | "archive">> {
  const manifest = await archive.manifest(run);
  const files = manifest === null ? [] : await lostFiles(archive, manifest);
  const lost = files.some(({ file }) => counts(file));
  // for a run that its gateway no longer knows, the operator uses --close
  const isThere = lost && manifest !== null && manifest.closedAt === null;
  return { lost, archive: isThere ? fetching(manifest, command) : null };
}

function fetching(manifest: Manifest, command: CommandToCopy): string {
  const gateway = /^https?:\/\//.test(manifest.source) ? manifest.source : "URL";
  return command("archive", "--gateway", gateway, formatRun(manifest));
}
