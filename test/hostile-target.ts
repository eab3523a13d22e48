import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import type { ArchiveJob } from "../src/extract/archive-run.ts";
import { archiveWorld, smallWorld } from "./archived-world.ts";
import { ArraySource } from "./array-source.ts";
import { type Running, start } from "./cli-process.ts";

export const targetRun = { instanceId: "alpha", runId: "2022-01-01" };

/** `runvault serve` over an archive of two small instances, in a process of its own, for clients that mean no good. */
export class HostileTarget implements AsyncDisposable {
  readonly folder: string;
  readonly archive: string;
  readonly running: Running;
  /** Ends in /api/v1. */
  readonly url: string;
  readonly port: number;
  readonly #before: string;

  private constructor(
    folder: string,
    running: Running,
    address: { url: string; port: number },
    files: string,
  ) {
    this.folder = folder;
    this.archive = join(folder, "archive");
    this.running = running;
    this.url = address.url;
    this.port = address.port;
    this.#before = files;
  }

  /** `args` are further options of `runvault serve`; `prepare` makes files that these name. */
  static async open({
    args = [],
    before = [],
    rows = 25,
    job = {},
    prepare = async () => [],
  }: {
    args?: readonly string[];
    before?: readonly string[];
    /** Of the first instance. */
    rows?: number;
    /** How the instances are archived, where in many small files is not what a test is about. */
    job?: Partial<ArchiveJob>;
    prepare?: (folder: string) => Promise<readonly string[]>;
  } = {}): Promise<HostileTarget> {
    const folder = await mkdtemp(join(tmpdir(), "runvault-hostile-"));
    const archive = join(folder, "archive");
    const other = { ...targetRun, instanceId: "beta" };
    await archiveWorld(archive, new ArraySource(targetRun, smallWorld(rows, targetRun)), job);
    await archiveWorld(archive, new ArraySource(other, smallWorld(25, other)), { tables: ["fills"] });
    const files = await hashes(archive);
    const all = ["serve", "--archive", archive, "--json", ...args, ...(await prepare(folder))];
    const running = start(all, {}, before);
    const address = await firstLine(running);
    return new HostileTarget(folder, running, JSON.parse(address), files);
  }

  /** What a text tells that no client should learn: stacks, paths of the machine, the words of DuckDB. */
  leaks(text: string): string[] {
    const secrets = [this.folder, process.cwd(), `${tmpdir()}/`, "node_modules", "node:internal"];
    const words =
      /\n\s+at |\.[jt]s:\d+|\bSELECT\b|read_parquet|(?:Binder|Parser|Catalog|Conversion|IO) Error|DuckDB/;
    const word = words.exec(text)?.[0];
    return [...secrets.filter((secret) => text.includes(secret)), ...(word === undefined ? [] : [word])];
  }

  /** What went wrong inside, as the log on standard error has it; empty when nothing did. */
  async trouble(): Promise<string> {
    const files = await hashes(this.archive);
    if (files !== this.#before) return "the files of the archive changed";
    const { status } = await fetch(`${this.url}/doctor`, { headers: this.headers });
    return status === 200 || status === 401 ? "" : `the doctor answers ${status}`;
  }

  /** Sent along by `trouble`. */
  headers: Record<string, string> = {};

  /** Stops the process and gives what it said on standard error. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<{ status: number | null; stderr: string }> {
    if (this.running.child.exitCode === null) this.running.child.kill(signal);
    return await this.running.finished;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop("SIGKILL");
    await rm(this.folder, { recursive: true, force: true });
  }
}

async function firstLine({ child, seen, finished }: Running): Promise<string> {
  let text = "";
  child.stdout.on("data", (chunk) => {
    text += chunk;
  });
  await Promise.race([
    seen("\n"),
    finished.then(({ stderr }) => Promise.reject(new Error(`it ended: ${stderr}`))),
  ]);
  return text.split("\n", 1)[0] ?? "";
}

/** Names and hashes of every file below a folder, locks and all. */
async function hashes(folder: string): Promise<string> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const lines = found
    .filter((entry) => entry.isFile())
    .map(async ({ parentPath, name }) => {
      const file = join(parentPath, name);
      return `${relative(folder, file)} ${createHash("sha256")
        .update(await readFile(file))
        .digest("hex")}`;
    });
  return (await Promise.all(lines)).sort().join("\n");
}

/** What is wrong with an error answer over REST; empty for the envelope of the plane that its path is of. */
export function envelopeFault(path: string, text: string): string {
  const isHistory = /^\/history(?:[/?]|$)/.test(path);
  try {
    const { ok, error, ...more } = JSON.parse(text);
    const names = Object.keys(error).sort().join();
    if (Object.keys(more).length > 0) return "there is more than the envelope";
    if (isHistory) {
      return ok === false && names === "code,message" && /^[a-z_]+$/.test(error.code) ? "" : "not of history";
    }
    const isControl = ok === undefined && names === "capability,code,hint,message,upstreamCode";
    return isControl && /^ERROR_CODE_[A-Z_]+$/.test(error.code) ? "" : "not of the control plane";
  } catch {
    return "no JSON";
  }
}
