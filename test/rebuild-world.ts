import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { openArchive } from "../src/archive/archive.ts";
import { openDuckDB } from "../src/archive/duckdb.ts";
import { fileList } from "../src/archive/sql.ts";
import { verifyRun } from "../src/archive/verify.ts";
import { type RebuildOutcome, rebuildRun } from "../src/extract/rebuild-run.ts";
import type { RunRef } from "../src/model/source.ts";
import { type ArrayRow, ArraySource, rowsAt } from "./array-source.ts";
import { type Finished, run as runCommand } from "./cli-process.ts";
import { filesBelow } from "./kill-driver.ts";
import { at, hours, run, TableWorld } from "./table-world.ts";

export const second: RunRef = { ...run, runId: "2022-02-02" };
export const third: RunRef = { ...run, runId: "2022-03-03" };

/** Fills of a run with a price of one's choosing in the first row. */
export function fillsOf(of: RunRef, price?: string): ArrayRow[] {
  const rows = rowsAt(of, "fills", hours(12).map(at));
  if (price === undefined) return rows;
  return rows.with(0, { ...rows[0]!, line: rows[0]!.line.replace(/"price":"[^"]*"/, `"price":"${price}"`) });
}

/** An archive to rebuild. */
export class RebuildWorld implements AsyncDisposable {
  readonly place: TableWorld;
  readonly #compiled: string;

  private constructor(place: TableWorld, compiled: string) {
    this.place = place;
    this.#compiled = compiled;
  }

  static async create(): Promise<RebuildWorld> {
    return new RebuildWorld(await TableWorld.create(), await mkdtemp(join(tmpdir(), "runvault-compiled-")));
  }

  get archive() {
    return this.place.archive;
  }

  async archiveFills(of: RunRef, price?: string): Promise<ArraySource> {
    const source = new ArraySource(of, new Map([["fills", fillsOf(of, price)]]));
    await this.place.archiveRun(source, { run: of });
    return source;
  }

  rebuild(of: RunRef, upTo: number | null): Promise<RebuildOutcome> {
    const { signal } = new AbortController();
    return rebuildRun({ archive: this.archive, run: of, upTo, clock: () => at(0), signal, tool: "test" });
  }

  command(...args: string[]): Promise<Finished> {
    // the same code is compiled for every process: once is enough
    return runCommand([...args, "--archive", this.archive.dir], { NODE_COMPILE_CACHE: this.#compiled });
  }

  /** Everything that commits. */
  async committedText(): Promise<string[]> {
    const files = [this.archive.layout.archiveFile, ...(await filesBelow(this.archive.layout.runsDir))];
    return await Promise.all(files.map((file) => readFile(file, "utf8")));
  }

  async expectVerifiedDeep(of: RunRef): Promise<void> {
    const report = await verifyRun(await openArchive(this.archive.dir), of, { deep: true });
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
  }

  /** The type of a column in each file of fills that people glob, by run. */
  async globbedTypes(column: string): Promise<Map<string, string>> {
    return await globbedTypes(this.archive.dir, this.archive.layout.tablesDir("fills"), column);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.place[Symbol.asyncDispose]();
    await rm(this.#compiled, { recursive: true, force: true });
  }
}

/** The type of a column in each Parquet file below a folder, by the name of the folder it is in. */
export async function globbedTypes(
  dir: string,
  folder: string,
  column: string,
): Promise<Map<string, string>> {
  const types = new Map<string, string>();
  await using duckdb = await openDuckDB({
    memoryLimitMb: 100,
    threads: 1,
    tempDirectory: join(dir, "staging"),
  });
  for (const file of await filesBelow(folder)) {
    const sql = `SELECT typeof(${column}) FROM read_parquet(${fileList([file])}) LIMIT 1`;
    types.set(file.split("/").at(-2)!, String((await duckdb.connection.runAndReadAll(sql)).getRows()[0]![0]));
  }
  return types;
}
