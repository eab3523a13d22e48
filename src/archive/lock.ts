import { dirname } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { RunvaultError } from "../model/error.ts";
import type { RunRef } from "../model/source.ts";
import { makeFolder } from "./durable.ts";
import type { Layout } from "./layout.ts";

/**
 * Holds a run for one job: a kernel lock, taken through DuckDB's own lock on its database file, so that a killed
 * process leaves nothing behind. Throws `locked` and names the holder's process where DuckDB does.
 */
export async function lockRun(layout: Layout, run: RunRef): Promise<AsyncDisposable> {
  const file = layout.lockFile(run);
  await makeFolder(dirname(file));
  if (held.has(file)) throw locked(file, run, process.pid.toString());
  held.add(file);
  try {
    const instance = await DuckDBInstance.create(file, { threads: "1" });
    return {
      [Symbol.asyncDispose]: async () => {
        instance.closeSync();
        held.delete(file);
      },
    };
  } catch (cause) {
    held.delete(file);
    const message = cause instanceof Error ? cause.message : String(cause);
    if (/conflicting lock/i.test(message)) throw locked(file, run, /PID (\d+)/.exec(message)?.[1], cause);
    if (/permission denied|read-only/i.test(message)) {
      throw new RunvaultError("storage_forbidden", "the lock file cannot be opened for writing", {
        cause,
        place: { file },
        hint: "Give this user permission on the archive folder, or point --archive elsewhere.",
      });
    }
    throw RunvaultError.from(cause, { place: { file } });
  }
}

// the kernel's lock is per process, so two jobs of one process are kept apart here
const held = new Set<string>();

function locked(file: string, run: RunRef, pid: string | undefined, cause?: unknown): RunvaultError {
  return new RunvaultError(
    "locked",
    `another job${pid === undefined ? "" : ` (pid ${pid})`} works on this run`,
    {
      cause,
      place: { instance: run.instanceId, run: run.runId, file },
      hint: "Wait for it to end, then run the same command again.",
    },
  );
}
