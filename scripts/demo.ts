// npm run demo: a gateway of simulated trading runs over real HTTP, its finished runs archived, proven and queried.
// Everything happens below one temporary folder, which is removed at the end.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const main = join(import.meta.dirname, "..", "dist", "cli", "main.js");
const folder = await mkdtemp(join(tmpdir(), "runvault-demo-"));
const archive = join(folder, "archive");

function say(text: string): void {
  process.stdout.write(`\n${text}\n`);
}

/** Runs one command as a user would type it; its output is the demo's. */
async function runvault(...args: string[]): Promise<void> {
  say(`$ runvault ${args.map((arg) => (/^[\w./:@=,-]+$/.test(arg) ? arg : `"${arg}"`)).join(" ")}`);
  const child = spawn(process.execPath, [main, ...args], {
    stdio: "inherit",
    env: { ...process.env, RUNVAULT_ARCHIVE: archive },
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`runvault ${args[0]} ended with exit status ${code}`);
}

async function startGateway(): Promise<{ gateway: ChildProcess; url: string }> {
  const args = [
    "simulate",
    "--seed",
    "7",
    "--instances",
    "2",
    "--runs",
    "2",
    "--rows",
    "50000",
    "--port",
    "0",
  ];
  say(`$ runvault ${args.join(" ")} &`);
  const gateway = spawn(
    process.execPath,
    [main, ...args, "--cache", join(folder, "cache"), "--json", "--quiet"],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const [line] = (await once(createInterface({ input: gateway.stdout! }), "line")) as [string];
  const { url } = JSON.parse(line) as { url: string };
  process.stdout.write(`the gateway answers at ${url}\n`);
  return { gateway, url };
}

let gateway: ChildProcess | undefined;
try {
  const started = await startGateway();
  gateway = started.gateway;
  await runvault("runs", "--gateway", started.url);
  await runvault("archive", "--all", "--finished", "--gateway", started.url);
  await runvault("verify", "--deep", "--against", started.url);
  await runvault("runs", "--archive", archive);
  await runvault(
    "query",
    "SELECT instance_id, run_id, side, count(*) AS fills, sum(price * quantity) AS traded, sum(fee) AS fees FROM fills GROUP BY ALL ORDER BY ALL",
  );
  await runvault(
    "query",
    "SELECT instance_id, run_id, first(equity ORDER BY ts_event) AS began, last(equity ORDER BY ts_event) AS ended, max(ts_event) AS at FROM equity GROUP BY ALL ORDER BY ALL",
  );
  say(
    "Both answers come from Parquet files whose row counts the gateway confirmed; that is what COMPLETE means.",
  );
} finally {
  if (gateway !== undefined) {
    gateway.kill("SIGTERM");
    await once(gateway, "close");
  }
  await rm(folder, { recursive: true, force: true });
}
