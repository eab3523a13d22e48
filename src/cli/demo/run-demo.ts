import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { exit, RunvaultError } from "../../model/error.ts";
import { makeFolder } from "../../model/make-folder.ts";
import { makeTemporaryFolder } from "../../model/temporary-folder.ts";
import { visible } from "../../model/text/visible-text.ts";
import { shellWord } from "../output/shell-word.ts";
import type { Session } from "../process/session.ts";

const run = "alpha-1/2022-01-01-001";
const world = ["--seed", "7", "--instances", "2", "--runs", "2", "--rows", "50000", "--port", "0"];
const sql =
  "SELECT instance_id, run_id, count(*) AS fills, sum(price * quantity) AS traded, sum(fee) AS fees FROM fills GROUP BY ALL ORDER BY ALL";

/**
 * Archives the runs of a simulated gateway over real HTTP with the commands that a user would type, each in a process of its
 * own, and leaves the archive, a page and a notebook. Gives the exit status of the first command that fails.
 */
export async function runDemo({ keep }: { readonly keep?: string | undefined }, session: Session) {
  const folder = await folderFor(keep);
  const archive = join(folder, "archive");
  const page = join(folder, "run.html");
  const notebook = join(folder, "run.ipynb");
  const cache = await makeTemporaryFolder("demo-cache");
  const commands = new Commands(archive, session);
  try {
    const url = await commands.startGateway(cache);
    for (const args of [
      ["runs", "--gateway", url],
      ["archive", "--all", "--finished", "--gateway", url],
      ["verify", "--deep", "--against", url],
      ["query", sql],
      ["report", run, "--out", page],
      ["notebook", folder, run],
    ]) {
      const status = await commands.run(args);
      if (status !== exit.done) return status;
    }
    const written = join(folder, "one-run.ipynb");
    await session.print(`\n$ mv ${visible(written)} ${visible(notebook)}\n`);
    await rename(written, notebook);
  } finally {
    await commands.stopGateway();
    await rm(cache, { recursive: true, force: true });
  }
  // npm says so to what it runs, by npx or from package.json
  const runvault = session.terminal.env.npm_command === undefined ? "runvault" : "npx runvault";
  const there = visible(shellWord(archive));
  await session.print(`
All four runs are COMPLETE: the archive has as many rows as the gateway counts. To look at:
  ${visible(page)}   charts, figures and trades of a run, for a browser
  ${visible(notebook)}  the same run in Jupyter
  ${visible(archive)}    the archive; any Parquet reader opens the files under tables/

Next:
  ${runvault} shell --archive ${there}
  ${runvault} metrics ${run} --archive ${there}
  ${runvault} init https://gateway.example.com/api/v1
`);
  return exit.done;
}

/** A new temporary folder, or the new or empty one that `--keep` names. */
async function folderFor(keep: string | undefined): Promise<string> {
  if (keep === undefined) return await makeTemporaryFolder("demo");
  const folder = resolve(keep);
  await makeFolder(folder);
  if ((await readdir(folder)).length === 0) return folder;
  throw new RunvaultError("invalid_argument", "--keep names a folder that is not empty", {
    place: { file: folder },
    hint: "Name a new folder.",
  });
}

/** Commands in processes of their own, whose output is the demo's. */
class Commands {
  readonly #archive: string;
  readonly #session: Session;
  #gateway: ChildProcess | null = null;

  constructor(archive: string, session: Session) {
    this.#archive = archive;
    this.#session = session;
  }

  /** Gives the address that it answers at. */
  async startGateway(cache: string): Promise<string> {
    await this.#show(["simulate", ...world], " &");
    const gateway = this.#spawn(["simulate", ...world, "--cache", cache, "--json", "--quiet"], "pipe");
    this.#gateway = gateway;
    const line = once(createInterface({ input: gateway.stdout! }), "line");
    const ended = once(gateway, "close").then(() => null);
    const first = (await Promise.race([line, ended])) as [string] | null;
    this.#session.signal.throwIfAborted();
    if (first === null) throw new RunvaultError("internal", "the simulated gateway ended before it answered");
    const { url } = JSON.parse(first[0]) as { url: string };
    await this.#session.print(`the gateway answers at ${url}\n`);
    return url;
  }

  async run(args: readonly string[]): Promise<number> {
    await this.#show(args, "");
    const [status] = (await once(this.#spawn(args, "inherit"), "close")) as [number | null];
    this.#session.signal.throwIfAborted();
    return status ?? exit.bug;
  }

  async stopGateway(): Promise<void> {
    const gateway = this.#gateway;
    if (gateway === null || gateway.exitCode !== null || gateway.signalCode !== null) return;
    const closed = once(gateway, "close");
    gateway.kill("SIGTERM");
    await closed;
  }

  async #show(args: readonly string[], after: string): Promise<void> {
    const { signal, print } = this.#session;
    signal.throwIfAborted();
    await print(`\n$ runvault ${args.map(quoted).map(visible).join(" ")}${after}\n`);
  }

  #spawn(args: readonly string[], stdout: "inherit" | "pipe"): ChildProcess {
    const { terminal, signal } = this.#session;
    // a gateway, a token or limits that the environment names are not the demo's
    const env = Object.entries(terminal.env).filter(([name]) => !name.startsWith("RUNVAULT_"));
    const child = spawn(process.execPath, [resolve(process.argv[1] ?? ""), ...args], {
      stdio: ["ignore", stdout, "inherit"],
      env: { ...Object.fromEntries(env), RUNVAULT_ARCHIVE: this.#archive },
    });
    const stop = () => child.kill("SIGTERM");
    signal.addEventListener("abort", stop, { once: true });
    child.once("close", () => signal.removeEventListener("abort", stop));
    return child;
  }
}

/** Double quotes for SQL, which has single ones. */
function quoted(word: string): string {
  return / /.test(word) && !/["$`\\]/.test(word) ? `"${word}"` : shellWord(word);
}
