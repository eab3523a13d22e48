import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Archive, openArchive } from "../src/archive/archive.ts";
import { type Manifest, manifestText } from "../src/archive/manifest.ts";
import { type VerifyReport, verifyArchive } from "../src/archive/verify.ts";
import { type ArchiveJob, archiveRun } from "../src/extract/archive-run.ts";
import { type TableName, tableNames } from "../src/model/table.ts";
import { type ArrayRow, ArraySource, rowsAt } from "./array-source.ts";

export const worldRun = { instanceId: "alpha", runId: "2022-01-01" };
const hour = 3_600_000_000_000n;
const start = 1_640_995_200_000_000_001n;

/** Rows of every table: twenty-five, some of them sharing a timestamp; fills refer to the orders. */
export function smallWorld(rows = 25, run = worldRun): Map<TableName, ArrayRow[]> {
  const times = Array.from({ length: rows }, (_, i) => start + BigInt(i - (i % 3 === 2 ? 1 : 0)) * hour);
  return new Map(tableNames.map((name) => [name, rowsAt(run, name, times, ["A", "B"])]));
}

/** Archives a source's run into `dir`, in segments of a few rows each. */
export async function archiveWorld(
  dir: string,
  source: ArraySource,
  more: Partial<ArchiveJob> = {},
): Promise<{ archive: Archive; manifest: Manifest }> {
  const archive = await openArchive(dir, { create: true });
  const { manifest } = await archiveRun({
    source,
    archive,
    run: source.run,
    clock: () => start + 1_000_000n * hour,
    random: () => 0,
    signal: new AbortController().signal,
    tool: "test",
    ...more,
    settings: { segmentBytes: 4000, sliceRows: 20, concurrency: 2, backoffBaseMs: 0, ...more.settings },
  });
  return { archive, manifest };
}

/** An archive of the small world, made once, of which each test damages a copy. */
export class ArchiveUnderTest implements AsyncDisposable {
  readonly folder: string;
  archive!: Archive;
  manifest!: Manifest;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** `tables` keeps the archive small where a test needs no more. */
  static async create(tables: readonly TableName[] = ["fills", "orders", "bars"]): Promise<ArchiveUnderTest> {
    const made = new ArchiveUnderTest(await mkdtemp(join(tmpdir(), "runvault-archived-")));
    await archiveWorld(join(made.folder, "pristine"), new ArraySource(worldRun, smallWorld()), { tables });
    return made;
  }

  /** Puts an undamaged copy in the place of the one before. */
  async renew(): Promise<void> {
    const copy = join(this.folder, "archive");
    await rm(copy, { recursive: true, force: true });
    await cp(join(this.folder, "pristine"), copy, { recursive: true });
    this.archive = await openArchive(copy);
    this.manifest = (await this.archive.manifest(worldRun))!;
  }

  dataFile(name: string): string {
    return join(this.archive.layout.dataDir(worldRun), name);
  }

  /** Rewrites the manifest as it was committed, but for one edit. */
  async editManifest(edit: (manifest: Manifest) => void): Promise<void> {
    const changed = structuredClone(this.manifest);
    edit(changed);
    await writeFile(this.archive.layout.manifestFile(worldRun), manifestText(changed));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** The checks that a report calls damaged or unproven, as `table check`, each once. */
export function failedChecks(report: VerifyReport): string[] {
  const failed = report.checks.filter(({ ok }) => !ok);
  return [...new Set(failed.map(({ table, check }) => `${table ?? "run"} ${check}`))].sort();
}

/** Every report of an archive. */
export async function verifyAll(archive: Archive): Promise<VerifyReport[]> {
  const reports: VerifyReport[] = [];
  for await (const report of verifyArchive(archive)) reports.push(report);
  return reports;
}
