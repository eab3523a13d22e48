// npm run demo [-- --keep DIR]: archives the finished runs of a simulated gateway over real HTTP, proves and queries them,
// and leaves the archive, a page and a notebook of one run in DIR, or in a temporary folder.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import buildWhereStale from "../test/fixtures/command/built.ts";

const main = join(import.meta.dirname, "..", "dist", "cli", "main.js");
const run = "alpha-1/2022-01-01-001";

function say(text: string): void {
  process.stdout.write(`\n${text}\n`);
}

function shown(args: readonly string[]): string {
  return args.map((arg) => (/^[\w./:@=,-]+$/.test(arg) ? arg : `"${arg}"`)).join(" ");
}

/** Where everything is left: a new folder, or the empty one that `--keep` names. */
async function folderFor(keep: string | undefined): Promise<string> {
  if (keep === undefined) return await mkdtemp(join(tmpdir(), "runvault-demo-"));
  const folder = resolve(keep);
  await mkdir(folder, { recursive: true });
  if ((await readdir(folder)).length > 0) {
    throw new Error(`${folder} is not empty: give --keep a new folder`);
  }
  return folder;
}

/** Runs one command as a user would type it; its output is the demo's. */
async function runvault(...args: string[]): Promise<void> {
  say(`$ runvault ${shown(args)}`);
  const child = spawn(process.execPath, [main, ...args], {
    stdio: "inherit",
    env: { ...process.env, RUNVAULT_ARCHIVE: archive },
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`runvault ${args[0]} ended with exit status ${code}`);
}

async function startGateway(cache: string): Promise<{ gateway: ChildProcess; url: string }> {
  const world = ["--seed", "7", "--instances", "2", "--runs", "2", "--rows", "50000"];
  const args = ["simulate", ...world, "--port", "0"];
  say(`$ runvault ${shown(args)} &`);
  const gateway = spawn(process.execPath, [main, ...args, "--cache", cache, "--json", "--quiet"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface({ input: gateway.stdout! }), "line")) as [string];
  const { url } = JSON.parse(line) as { url: string };
  process.stdout.write(`the gateway answers at ${url}\n`);
  return { gateway, url };
}

await buildWhereStale();
const { values } = parseArgs({ options: { keep: { type: "string" } } });
const folder = await folderFor(values.keep);
const archive = join(folder, "archive");
const page = join(folder, "run.html");
const notebook = join(folder, "run.ipynb");
const cache = await mkdtemp(join(tmpdir(), "runvault-demo-cache-"));
let gateway: ChildProcess | undefined;
try {
  const started = await startGateway(cache);
  gateway = started.gateway;
  await runvault("runs", "--gateway", started.url);
  await runvault("archive", "--all", "--finished", "--gateway", started.url);
  await runvault("verify", "--deep", "--against", started.url);
  await runvault(
    "query",
    "SELECT instance_id, run_id, count(*) AS fills, sum(price * quantity) AS traded, sum(fee) AS fees FROM fills GROUP BY ALL ORDER BY ALL",
  );
  await runvault("report", run, "--out", page);
  await runvault("notebook", folder, run);
  const written = join(folder, "one-run.ipynb");
  say(`$ mv ${written} ${notebook}`);
  await rename(written, notebook);
} finally {
  if (gateway !== undefined) {
    gateway.kill("SIGTERM");
    await once(gateway, "close");
  }
  await rm(cache, { recursive: true, force: true });
}

say(`All four runs are COMPLETE: the archive has as many rows as the gateway counts. To look at:
  ${page}   charts, figures and trades of a run, for a browser
  ${notebook}  the same run in Jupyter
  ${archive}    the archive; any Parquet reader opens the files under tables/

Next:
  npx runvault shell --archive ${archive}
  npx runvault metrics ${run} --archive ${archive}
  npx runvault init https://gateway.example.com/api/v1`);
