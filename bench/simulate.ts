import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export interface Gateway extends AsyncDisposable {
  readonly url: string;
  /** The first instance and its first run. */
  readonly instanceId: string;
  readonly runId: string;
}

/** Starts `runvault simulate` as a process of its own; its rendered world is kept and used again. */
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
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await once(child, "close");
    },
  };
}
