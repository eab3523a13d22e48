import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";

export interface Roapi extends AsyncDisposable {
  /** Every row of the table; `?limit=` and `?filter[column]=` narrow it. */
  readonly rows: string;
  readonly health: string;
  /** Most memory it had since the peak was last cleared, in MiB. */
  peakMb(): Promise<number>;
}

/** Starts roapi (`pip install roapi`) on one Parquet file, read again for each request, as runvault does. */
export async function roapi(program: string, parquet: string): Promise<Roapi> {
  const [http, postgres] = [18_090, 18_091];
  const child = spawn(
    program,
    [
      ...["--addr-http", `127.0.0.1:${http}`, "--addr-postgres", `127.0.0.1:${postgres}`],
      ...["--table", `rows=${parquet},format=parquet,use_memory_table=false`],
    ],
    { stdio: "ignore", env: { ...process.env, RUST_LOG: "error" } },
  );
  const origin = `http://127.0.0.1:${http}`;
  for (let tries = 0; !(await isThere(`${origin}/health`)); tries++) {
    if (child.exitCode !== null || tries > 100) throw new Error(`${program} does not answer`);
    await setTimeout(100);
  }
  return {
    rows: `${origin}/api/tables/rows`,
    health: `${origin}/health`,
    peakMb: async () => await peakMb(child.pid!),
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await once(child, "close");
    },
  };
}

/** Most memory a process had at a time, in MiB. */
export async function peakMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)![1]) / 1024);
}

async function isThere(address: string): Promise<boolean> {
  return await fetch(address).then(
    ({ ok }) => ok,
    () => false,
  );
}
