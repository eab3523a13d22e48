import { type ChildProcess, execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";

/** A process that allocates gigabytes a second is stopped within one of them. */
const everyMs = 250;

/** Calls back once the process holds more memory than `most`; checks regularly until then, or until disposed. */
export function watchResident(
  { pid }: Pick<ChildProcess, "pid">,
  mostBytes: number,
  onMore: () => void,
): Disposable {
  const leaving = new AbortController();
  const watch = async () => {
    while (pid !== undefined) {
      await wait(everyMs, undefined, { signal: leaving.signal, ref: false });
      // a failed look proves nothing; the next one may work
      const bytes = await residentBytes(pid).catch(() => 0);
      if (bytes > mostBytes) return onMore();
    }
  };
  // aborted when no longer needed
  watch().catch(() => {});
  return { [Symbol.dispose]: () => leaving.abort() };
}

/** Memory that a process holds. Throws if the system does not say. */
async function residentBytes(pid: number): Promise<number> {
  if (process.platform === "linux") {
    const status = await readFile(`/proc/${pid}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
  }
  const { stdout } = await promisify(execFile)("ps", ["-o", "rss=", "-p", String(pid)]);
  return Number(stdout) * 1024;
}
