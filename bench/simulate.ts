import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export interface Gateway extends AsyncDisposable {
  readonly url: string;
  /** The first instance and its first run. */
  readonly instanceId: string;
  readonly runId: string;
  /** Processor time that its process has taken so far. */
  processorSeconds(): number;
  /** The most memory that its process has held so far. */
  peakMb(): number;
}

/** Clock ticks that /proc counts a second by, on every Linux. */
const ticksPerSecond = 100;

/** Starts `runvault simulate` as a separate process; its rendered world is kept and used again. */
export async function simulate(options: readonly string[]): Promise<Gateway> {
  const main = join(import.meta.dirname, "..", "dist", "cli", "main.js");
  const cache = join(tmpdir(), "runvault-bench-cache");
  const child = spawn(
    process.execPath,
    [main, "simulate", "--port", "0", "--cache", cache, "--json", ...options],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const { url } = JSON.parse(line) as { url: string };
  const answer = await fetch(`${url}/history/instances`);
  const { instances } = (await answer.json()) as { instances: { instance_id: string; run_ids: string[] }[] };
  const { instance_id: instanceId, run_ids: runIds } = instances[0]!;
  return {
    url,
    instanceId,
    runId: runIds[0]!,
    processorSeconds: () => {
      // the name of the process, in brackets, may have blanks in it; the third field follows it
      const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
      return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
    },
    peakMb: () =>
      Number(/^VmHWM:\s*(\d+) kB/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))![1]) / 1024,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await once(child, "close");
    },
  };
}
