import { createHash } from "node:crypto";
import { cp, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { type Archive, openArchive } from "../src/archive/archive.ts";
import { filesOf } from "../src/archive/commit.ts";
import { diffArchives } from "../src/archive/diff.ts";
import { Layout } from "../src/archive/layout.ts";
import type { Manifest } from "../src/archive/manifest.ts";
import { verifyRun } from "../src/archive/verify.ts";
import type { RowRequest, RunRef } from "../src/model/source.ts";
import type { Nanoseconds } from "../src/model/time.ts";
import { parseFault } from "../src/serve/fault.ts";
import type { RequestLogEntry } from "../src/serve/request-log.ts";
import { serve } from "../src/serve/server.ts";
import type { Transport } from "../src/serve/transport.ts";
import { openSimulator, type Simulator, type SimulatorOptions } from "../src/simulator/simulator.ts";
import { type Finished, type Running, start } from "./cli-process.ts";

/** Every named moment of `archive`, in the order in which a job comes to them. */
export const archiveSteps = [
  "archive-file-written",
  "planned",
  "segments-dropped",
  "survey-journalled",
  "segment-written",
  "segment-renamed",
  "segment-journalled",
  "quarantine-journalled",
  "converted",
  "parquet-renamed",
  "parquet-journalled",
  "certified",
  "commit-moved-one",
  "commit-moved",
  "manifest-written",
  "manifest-renamed",
  "links-refreshed",
  "pending-removed",
] as const;
export type ArchiveStep = (typeof archiveSteps)[number];

/** Every named moment of `export`, which is killed in export-command.test.ts. */
export const exportSteps = ["export-piece-written", "export-written"] as const;

/** Every named moment of `rm`. */
export const removeSteps = ["remove-manifest", "remove-folder"] as const;

/** Every named moment of `rebuild` that `archive` has not. */
export const rebuildSteps = [
  "rebuild-recorded",
  "widening-written",
  "widening-recorded",
  "tables-removed",
  "tables-replaced",
  "widening-finished",
] as const;

/** `STEP` or `STEP:N`, as RUNVAULT_KILL_AT takes it. */
export type KillAt = ArchiveStep | `${ArchiveStep}:${number}`;

export function stepOf(at: KillAt): ArchiveStep {
  return at.split(":")[0] as ArchiveStep;
}

/** A window of one table that counts as fetched. */
interface Held {
  readonly table: string;
  readonly file: string;
  readonly from: bigint;
  readonly to: bigint;
}

/** A served world and the folder in which its archives are made, all gone when disposed. */
export class KillWorld implements AsyncDisposable {
  readonly folder: string;
  readonly simulator: Simulator;
  readonly run: RunRef;
  /** What time it is for a growing run. */
  now: Nanoseconds = 0n;
  readonly #closers: (() => Promise<void>)[] = [];
  #archives = 0;

  private constructor(folder: string, simulator: Simulator, run: RunRef) {
    this.folder = folder;
    this.simulator = simulator;
    this.run = run;
  }

  static async create(options: Partial<SimulatorOptions> = {}): Promise<KillWorld> {
    const folder = await mkdtemp(join(tmpdir(), "runvault-kill-"));
    let world: KillWorld | undefined;
    const simulator = await openSimulator({
      seed: "kill",
      runs: 1,
      rows: 1500,
      ...options,
      clock: () => world?.now ?? 0n,
      cacheDir: join(folder, "worlds"),
    });
    const [instance] = await simulator.instances();
    const run = { instanceId: instance!.instanceId, runId: instance!.currentRunId! };
    world = new KillWorld(folder, simulator, run);
    return world;
  }

  /** A gateway on the world, with its log. */
  async serve(options: ServedKind = {}): Promise<LoggedGateway> {
    let open = 0;
    let asked = 0;
    const log: RequestLogEntry[] = [];
    const { simulator } = this;
    async function* rows(request: RowRequest) {
      asked++;
      open++;
      try {
        yield* simulator.rows(request);
      } finally {
        open--;
      }
    }
    const served = await serve({
      source: { ...simulator, rows },
      control: simulator,
      host: "127.0.0.1",
      port: 0,
      literal: options.literal ?? false,
      ...(options.transport === undefined ? {} : { transports: [options.transport] }),
      faults: (options.faults ?? []).map(parseFault),
      onRequest: (entry) => log.push(entry),
    });
    this.#closers.push(() => served.close());
    return {
      url: served.url,
      flags: options.transport === undefined ? [] : ["--transport", options.transport],
      log,
      quiet: async () => {
        // a killed client's last requests may still be on their way through the socket
        for (let before = -1; open > 0 || before !== asked + log.length; await sleep(20))
          before = asked + log.length;
      },
    };
  }

  /** A folder for an archive, not there yet; or a copy of an archive. */
  async archiveFolder(from?: string): Promise<string> {
    const folder = join(this.folder, `archive-${++this.#archives}`);
    if (from !== undefined) await cp(from, folder, { recursive: true });
    return folder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closers) await close();
    await this.simulator[Symbol.asyncDispose]();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** How a gateway answers. */
export interface ServedKind {
  readonly literal?: boolean;
  readonly faults?: readonly string[];
  /** The only one it speaks, and `archive` is told to; default both, and `archive` chooses. */
  readonly transport?: Transport;
}

export interface LoggedGateway {
  readonly url: string;
  /** What `archive` is given to speak with it. */
  readonly flags: readonly string[];
  /** Every answered request, in the order of their ends. */
  readonly log: RequestLogEntry[];
  /** Resolves when no answer is under way and none follows. */
  quiet(): Promise<void>;
}

/** The same `runvault archive` command, again and again on one archive, with what is looked at in between. */
export class KillDriver {
  readonly world: KillWorld;
  readonly gateway: LoggedGateway;
  readonly dir: string;
  /** Steps and moments at which a process was killed. */
  readonly kills: string[] = [];
  readonly #env: Record<string, string>;
  readonly #settings: readonly string[];

  constructor(world: KillWorld, gateway: LoggedGateway, dir: string, settings: readonly string[] = []) {
    this.world = world;
    this.gateway = gateway;
    this.dir = dir;
    this.#settings = settings;
    // the same code is compiled for every process: once is enough
    this.#env = { NODE_COMPILE_CACHE: join(world.folder, "compiled") };
  }

  get layout(): Layout {
    return new Layout(this.dir);
  }

  start(env: Record<string, string> = {}): Running {
    const { instanceId, runId } = this.world.run;
    const args = ["archive", `${instanceId}/${runId}`, "--gateway", this.gateway.url, "--archive", this.dir];
    const small = ["--segment-bytes", "9000", "--slice-rows", "60"];
    return start([...args, ...small, ...this.gateway.flags, ...this.#settings], { ...this.#env, ...env });
  }

  /** Starts the command and has it killed at a step. Throws where it ends before. */
  async killAt(at: KillAt): Promise<void> {
    const running = this.start({ RUNVAULT_KILL_AT: at });
    const { stdout, stderr } = await running.finished;
    if (running.child.signalCode !== "SIGKILL") {
      throw new Error(
        `it never came to ${at}, killed before at ${this.kills.join(", ")}:\n${stdout}${stderr}`,
      );
    }
    this.kills.push(at);
    await this.gateway.quiet();
  }

  /** Starts the command and kills it so long after its first request; false when it had ended by then. */
  async killAfter(ms: number): Promise<boolean> {
    const running = this.start();
    const seen = this.gateway.log.length;
    while (this.gateway.log.length === seen && running.child.exitCode === null) await sleep(1);
    await Promise.race([sleep(ms), running.finished]);
    running.child.kill("SIGKILL");
    await running.finished;
    await this.gateway.quiet();
    const landed = running.child.signalCode === "SIGKILL";
    if (landed) this.kills.push(`${Math.round(ms)} ms`);
    return landed;
  }

  /** Runs the same command until it ends by itself. */
  async goOn(status = 0): Promise<Finished> {
    const finished = await this.start().finished;
    expect(finished, `after kills at ${this.kills.join(", ")}`).toMatchObject({ status });
    await this.gateway.quiet();
    return finished;
  }

  /** Segments that a journal line on disk makes count. */
  async journalled(): Promise<Held[]> {
    const held = new Map<string, Held>();
    for (const entry of await this.#journal()) {
      if (entry.kind === "drop") for (const file of entry.files!) held.delete(file);
      if (entry.kind === "clean") held.delete(entry.replaces!);
      for (const { file, from, to } of [...(entry.segments ?? []), ...(entry.segment ? [entry.segment] : [])])
        held.set(file, { table: entry.table!, file, from: BigInt(from), to: BigInt(to) });
    }
    return [...held.values()];
  }

  /** Segments that the journal has stopped from counting, committed ones among them. */
  async dropped(): Promise<Set<string>> {
    return new Set((await this.#journal()).flatMap(({ files = [] }) => files));
  }

  async #journal(): Promise<JournalLine[]> {
    const text = await readOrEmpty(this.layout.journalFile(this.world.run));
    // the last line may be torn
    const lines = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
    return lines.slice(0, -1).map((line) => JSON.parse(line) as JournalLine);
  }

  async manifest(): Promise<Manifest | null> {
    return await (await openArchive(this.dir)).manifest(this.world.run);
  }

  /**
   * What readers see now is one generation and all of it: the manifest is `before`'s, to the byte, or a whole later
   * one; every file that it names is there with its hash; every file in `tables/` is a bucket of `before` or of it.
   */
  async readersSeeOneGeneration(before: Manifest | null): Promise<"before" | "after"> {
    const archive = await openArchive(this.dir);
    const seen = await archive.manifest(this.world.run);
    const after = seen !== null && seen.generation !== before?.generation;
    if (!after) expect(seen).toEqual(before);
    if (seen !== null) {
      const report = await verifyRun(archive, this.world.run);
      expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
    }
    const whole = new Set([before, seen].flatMap((manifest) => parquetHashes(manifest)));
    for (const file of await filesBelow(join(this.dir, "tables"))) {
      if (!file.endsWith(".parquet")) continue;
      expect(whole).toContain(
        createHash("sha256")
          .update(await readFile(file))
          .digest("hex"),
      );
    }
    return after ? "after" : "before";
  }

  /** No request since the `since`-th in the log asks for rows of a window that was held then. */
  expectNotAskedAgain(held: readonly Held[], since: number): void {
    for (const { table, from, to } of this.gateway.log.slice(since)) {
      if (table === undefined) continue;
      const again = held.filter(
        (window) =>
          window.table === table &&
          (from === undefined || BigInt(from) < window.to) &&
          (to === undefined || BigInt(to) > window.from),
      );
      expect(again, `[${from}, ${to}) of ${table} after kills at ${this.kills.join(", ")}`).toEqual([]);
    }
  }

  /**
   * Kills at each of `steps` in turn, each time looks at what readers see, goes on, and holds every later request
   * against what the journal held at each kill. Gives the number of windows that were held over all kills.
   */
  async killAtEach(
    steps: readonly KillAt[],
    before: Manifest | null = null,
    atKill: (at: KillAt) => Promise<void> = async () => {},
    status = 0,
  ): Promise<number> {
    const heldAt: { held: Held[]; since: number }[] = [];
    for (const at of steps) {
      await this.killAt(at);
      if (stepOf(at) !== "archive-file-written") {
        const seen = await this.readersSeeOneGeneration(before);
        expect(seen, at).toBe(isCommitted(stepOf(at)) ? "after" : "before");
      }
      await atKill(at);
      heldAt.push({ held: await this.journalled(), since: this.gateway.log.length });
    }
    await this.goOn(status);
    for (const { held, since } of heldAt) this.expectNotAskedAgain(held, since);
    return heldAt.reduce((sum, { held }) => sum + held.length, 0);
  }

  /**
   * The archive equals an undisturbed one: same rows in the same order, same manifest but for what making it anew
   * changes, windows and bytes of segments included; `verify --deep` finds it whole, and nothing is left over.
   */
  async expectEqualTo(undisturbed: Archive): Promise<void> {
    const context = `after kills at ${this.kills.join(", ")}`;
    const { run } = this.world;
    const archive = await openArchive(this.dir);
    const { equal, runs } = await diffArchives(undisturbed, archive);
    expect(equal, `${context}: ${JSON.stringify(runs)}`).toBe(true);
    const manifest = (await archive.manifest(run))!;
    expect(timeless(manifest), context).toEqual(timeless((await undisturbed.manifest(run))!));
    const report = await verifyRun(archive, run, { deep: true });
    const proven = manifest.state === "COMPLETE" || manifest.state === "OPEN";
    const bad = report.checks.filter(({ ok, level }) => !ok && (proven || level !== "unproven"));
    expect(bad, context).toEqual([]);
    if (manifest.generation === 1) await this.expectNothingLeftOver(manifest);
  }

  async expectNothingLeftOver(manifest: Manifest): Promise<void> {
    const { layout } = this;
    const { run } = this.world;
    expect((await filesBelow(layout.dataDir(run))).length).toBe(filesOf(manifest).data.size);
    expect(await filesBelow(layout.pendingDir(run))).toEqual([]);
    expect(await filesBelow(layout.stagingDir(run))).toEqual([]);
    const asides = (await filesBelow(join(this.dir, "runs"))).filter((file) => file.endsWith(".part"));
    expect(asides).toEqual([]);
  }
}

/** True for the steps behind the rename that commits. */
export function isCommitted(step: ArchiveStep): boolean {
  return archiveSteps.indexOf(step) >= archiveSteps.indexOf("manifest-renamed");
}

interface JournalLine {
  readonly kind: string;
  readonly table?: string;
  readonly files?: string[];
  readonly segments?: Window[];
  readonly replaces?: string;
  readonly segment?: Window;
}

interface Window {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** A manifest without what differs between equal archives: generation, times, retries, file names, Parquet hashes. */
function timeless(manifest: Manifest): unknown {
  const tables = Object.entries(manifest.tables).map(([name, table]) => [
    name,
    {
      ...table,
      certificate: table.certificate === null ? null : { ...table.certificate, checkedAt: "" },
      // one zstd frame of the same lines: the same bytes
      segments: table.segments.map((segment) => ({ ...segment, file: "" })),
      parquet: table.parquet.map((parquet) => ({ ...parquet, file: "", sha256: "", storedBytes: 0 })),
      quarantine: table.quarantine.map((aside) => ({ ...aside, file: "", segment: "", sha256: "" })),
      error: table.error === null ? null : { ...table.error, at: "" },
    },
  ]);
  const documents = Object.entries(manifest.documents).map(([kind, document]) => [
    kind,
    { ...document, file: "" },
  ]);
  return {
    ...manifest,
    ...{ generation: 0, startedAt: "", committedAt: "", durationMs: 0, retries: 0 },
    tables: Object.fromEntries(tables),
    documents: Object.fromEntries(documents),
  };
}

function parquetHashes(manifest: Manifest | null): string[] {
  return Object.values(manifest?.tables ?? {}).flatMap(({ parquet }) => parquet.map(({ sha256 }) => sha256));
}

/** Every file below a folder; none where there is no such folder. */
export async function filesBelow(folder: string): Promise<string[]> {
  const there = await stat(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (there === null) return [];
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

async function readOrEmpty(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}
