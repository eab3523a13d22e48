import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { type Archive, openArchive } from "../src/archive/archive.ts";
import { type ArchiveJob, archiveRun, type RunOutcome } from "../src/extract/archive-run.ts";
import type { TableName } from "../src/model/table.ts";
import { parquetLines, segmentLines } from "./archived-lines.ts";
import { type ArrayRow, type ArraySource, rowsAt } from "./array-source.ts";

export const run = { instanceId: "alpha", runId: "2022-01-01" };
const hour = 3_600_000_000_000n;
const start = 1_640_995_200_000_000_000n;

/** The nth hour of the run. */
export const at = (n: number) => start + BigInt(n) * hour;

/** Rows of some tables, one an hour for the hours given. */
export function world(hours: Partial<Record<TableName, readonly number[]>>): Map<TableName, ArrayRow[]> {
  return new Map(
    Object.entries(hours).map(([name, list]) => [
      name as TableName,
      rowsAt(run, name as TableName, list.map(at)),
    ]),
  );
}

/** Hours from `first`, `count` of them. */
export const hours = (count: number, first = 0) => Array.from({ length: count }, (_, i) => first + i);

/** The same rows with another price: no count tells the difference. */
export function repriced(rows: readonly ArrayRow[]): ArrayRow[] {
  return rows.map((row) => ({ ...row, line: row.line.replace(/"price":"[^"]*"/, '"price":"777"') }));
}

/** An archive in a folder of its own. */
export class TableWorld implements AsyncDisposable {
  readonly archive: Archive;
  readonly #folder: string;

  private constructor(folder: string, archive: Archive) {
    this.#folder = folder;
    this.archive = archive;
  }

  static async create(): Promise<TableWorld> {
    const folder = await mkdtemp(join(tmpdir(), "runvault-table-"));
    return new TableWorld(folder, await openArchive(join(folder, "archive"), { create: true }));
  }

  /** Archives the source's tables, in small segments, one slice at a time. */
  archiveRun(source: ArraySource, more: Partial<ArchiveJob> = {}): Promise<RunOutcome> {
    return archiveRun({
      source,
      archive: this.archive,
      run,
      tables: [...source.tables.keys()],
      clock: () => at(1_000_000),
      random: () => 0,
      signal: new AbortController().signal,
      tool: "test",
      ...more,
      settings: { segmentBytes: 3000, sliceRows: 20, concurrency: 1, backoffBaseMs: 0, ...more.settings },
    });
  }

  /** The same, killed at the nth time of a step. */
  async archiveUntil(source: ArraySource, step: string, times: number): Promise<void> {
    const killed = new Error("killed");
    let left = times;
    const job = this.archiveRun(source, {
      step: (name) => {
        if (name === step && --left === 0) throw killed;
      },
    });
    await expect(job).rejects.toThrow("killed");
  }

  /** Segments and Parquet of a table hold these rows, line by line. */
  async expectRows(name: TableName, rows: readonly ArrayRow[]): Promise<void> {
    const lines = rows.map(({ line }) => line);
    expect(await segmentLines(this.archive, run, name)).toEqual(lines);
    expect(await parquetLines(this.archive, run, name)).toEqual(lines);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}
