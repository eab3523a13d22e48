import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Archive, openArchive } from "../src/archive/archive.ts";
import { archiveRun } from "../src/extract/archive-run.ts";
import type { RunRef } from "../src/model/source.ts";
import { type TableName, tableNamed } from "../src/model/table.ts";
import { wallClock } from "../src/model/time.ts";
import { type Served, serve } from "../src/serve/server.ts";
import { openSimulator, type Simulator } from "../src/simulator/simulator.ts";
import { type Running, start } from "./cli-process.ts";

/** A simulated gateway, an archive of all its runs, and `runvault serve` of that archive in a process of its own. */
export class ServedArchive implements AsyncDisposable {
  readonly folder: string;
  readonly #simulator: Simulator;
  /** The gateway that the archive was made from. */
  readonly simulated: Served;
  readonly archive: Archive;
  /** Every run, in the order of instances and then of age. */
  readonly runs: readonly RunRef[];
  /** Base address of the served archive. */
  url = "";
  readonly #servers: Running[] = [];

  private constructor(
    folder: string,
    simulator: Simulator,
    simulated: Served,
    archive: Archive,
    runs: readonly RunRef[],
  ) {
    this.folder = folder;
    this.#simulator = simulator;
    this.simulated = simulated;
    this.archive = archive;
    this.runs = runs;
  }

  /** Segments are small, so that whole tables are answered from several. */
  static async open(options: { rows?: number; instances?: number } = {}): Promise<ServedArchive> {
    const folder = await mkdtemp(join(tmpdir(), "runvault-served-"));
    const cacheDir = join(folder, "worlds");
    const simulator = await openSimulator({ seed: "clients", runs: 2, rows: 2000, cacheDir, ...options });
    const simulated = await serve({ source: simulator, control: simulator, host: "127.0.0.1", port: 0 });
    const archive = await openArchive(join(folder, "archive"), { create: true });
    const runs = (await simulator.instances()).flatMap(({ instanceId, runIds }) =>
      runIds.map((runId) => ({ instanceId, runId })),
    );
    for (const run of runs) {
      const { manifest } = await archiveRun({
        source: simulator,
        archive,
        run,
        settings: { segmentBytes: 16 * 1024 },
        clock: wallClock,
        random: () => 0,
        signal: new AbortController().signal,
        tool: "test",
      });
      const open = Object.entries(manifest.tables).filter(([, { state }]) => state !== "COMPLETE");
      if (open.length > 0) throw new Error(`not complete: ${open.map(([name]) => name).join(", ")}`);
    }
    const made = new ServedArchive(folder, simulator, simulated, archive, runs);
    made.url = await made.serve();
    return made;
  }

  /** Starts another server of the archive with these options; gives its base address. */
  async serve(...options: string[]): Promise<string> {
    const server = start(["serve", "--archive", this.archive.dir, ...options]);
    this.#servers.push(server);
    const [line] = (await Promise.race([
      once(createInterface(server.child.stdout), "line"),
      server.finished.then(({ stderr }) => {
        throw new Error(`ended before it listened: ${stderr}`);
      }),
    ])) as [string];
    return line;
  }

  /** Address of a table's rows of a run, on the served archive or on the server given. */
  rowsUrl(run: RunRef, table: TableName, query = "", base = this.url): string {
    return `${base}${tableNamed(table).path}?instance=${run.instanceId}&run_id=${run.runId}${query}`;
  }

  /** The lines that the simulated gateway answers. */
  async simulatedLines(run: RunRef, table: TableName, query = ""): Promise<string[]> {
    const response = await fetch(this.rowsUrl(run, table, query, this.simulated.url));
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
    return (await response.text()).split("\n").slice(0, -1);
  }

  /** Changes one byte of a table's second segment while `during` goes on. */
  async withDamage(run: RunRef, table: TableName, during: () => Promise<void>): Promise<void> {
    const [, second] = (await this.archive.manifest(run))!.tables[table]!.segments;
    const file = join(this.archive.layout.dataDir(run), second!.file);
    const bytes = await readFile(file);
    const changed = Buffer.from(bytes);
    changed[changed.length >> 1]! ^= 1;
    await writeFile(file, changed);
    try {
      await during();
    } finally {
      await writeFile(file, bytes);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#servers) if (child.exitCode === null) child.kill("SIGKILL");
    await Promise.all(this.#servers.map(({ finished }) => finished));
    await this.simulated.close();
    await this.#simulator[Symbol.asyncDispose]();
    await rm(this.folder, { recursive: true, force: true });
  }
}
