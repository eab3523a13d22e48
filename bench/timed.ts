import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

export interface Timed {
  readonly seconds: number;
  readonly processorSeconds: number;
  readonly peakMb: number;
}

/** Runs a shell command under GNU time: wall and processor seconds, and the peak memory of its largest process. */
export async function timed(command: string, folder: string): Promise<Timed> {
  const report = join(folder, "time");
  const shell = ["bash", "-c", `set -eo pipefail; ${command}`];
  const child = spawn("/usr/bin/time", ["-f", "%e %U %S %M", "-o", report, ...shell], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  if (code !== 0) throw new Error(`exit ${code}: ${command}`);
  const [wall, user, system, kilobytes] = (await readFile(report, "utf8")).trim().split(/\s+/).map(Number);
  return { seconds: wall!, processorSeconds: user! + system!, peakMb: kilobytes! / 1024 };
}

export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[sorted.length >> 1]!;
}
