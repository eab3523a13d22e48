import { type ChildProcess, execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";

/** How often: what allocates at gigabytes a second is stopped within one of them. */
const everyMs = 250;

/** Calls back once the process holds more memory than that; until then looks again and again, or until disposed. */
export function watchResident(
  { pid }: Pick<ChildProcess, "pid">,
  mostBytes: number,
  onMore: () => void,
): Disposable {
  const leaving = new AbortController();
  const watch = async () => {
    while (pid !== undefined) {
      await wait(everyMs, undefined, { signal: leaving.signal, ref: false });
      // one look that fails says nothing; the next one may not
      const bytes = await residentBytes(pid).catch(() => 0);
      if (bytes > mostBytes) return onMore();
    }
  };
  // it ends because nobody wants it any more
  watch().catch(() => {});
  return { [Symbol.dispose]: () => leaving.abort() };
}

/** Memory that a process holds. Throws where that cannot be had. */
async function residentBytes(pid: number): Promise<number> {
  if (process.platform === "linux") {
    const status = await readFile(`/proc/${pid}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
  }
  const { stdout } = await promisify(execFile)("ps", ["-o", "rss=", "-p", String(pid)]);
  return Number(stdout) * 1024;
}
