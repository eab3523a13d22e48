import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { analysedTables } from "../../analytics/analysed-tables.ts";
import { exportTables } from "../../analytics/export/export.ts";
import { ExportSession } from "../../analytics/export/export-session.ts";
import type { InstrumentsFile } from "../../analytics/instruments/read-instruments.ts";
import type { Archive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { provenView } from "../../archive/manifest/table-view.ts";
import { RunvaultError } from "../../model/error.ts";
import { type Table, tables } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { JobExport } from "../file/job-schema.ts";
import type { AfterLine } from "../record/job-record.ts";
import { jobInstruments } from "./job-instruments.ts";

export interface JobExportInput {
  readonly archive: Archive;
  readonly one: JobExport;
  /** The job's archived runs. */
  readonly runs: readonly RunRef[];
  /** When the execution began: `last` counts from here. */
  readonly began: Nanoseconds;
  /** Whether the export was last made from data with this fingerprint. */
  readonly isMadeOf: (out: string, fingerprint: string) => boolean;
  readonly signal: AbortSignal;
  readonly step: (name: string) => void;
}

/** The result of an export for the record, without its time. */
export type Exported = Pick<AfterLine, "out" | "result" | "rows" | "fingerprint"> & {
  readonly error: RunvaultError | null;
};

/**
 * Makes an export of a job: written aside, then renamed. An up-to-date export is left as it is. Failures are in the
 * result; the archive never changes.
 */
export async function jobExport(input: JobExportInput): Promise<Exported> {
  const { archive, one, isMadeOf, began, signal, step } = input;
  const out = basename(one.out);
  try {
    await archive.refresh();
    const manifests = await manifestsOf(input);
    const names = new Set<string>(one.tables === "all" ? tables.map(({ name }) => name) : one.tables);
    if (one.with_analytics) for (const name of analysedTables) names.add(name);
    const chosen = tables.filter(({ name }) => names.has(name));
    const instruments = await jobInstruments("after.exports.N.instruments", one.instruments);
    const from = one.last === undefined ? undefined : began - one.last.ns;
    const fingerprint = fingerprintOf(archive, one, { chosen, instruments }, manifests, from);
    if (isMadeOf(out, fingerprint) && (await isThere(one.out)))
      return { out, result: "unchanged", rows: null, fingerprint, error: null };
    await using session = await ExportSession.open(archive, {
      readManifests: async () => manifests,
      tables: chosen,
      allowIncomplete: false,
      memoryLimitMb: 512,
      threads: 2,
      selection: { filters: {}, symbols: one.symbols, from, decimals: one.decimals },
      signal,
    });
    const files = await exportTables(session, chosen, {
      format: one.format,
      out: one.out,
      force: true,
      partition: one.partition ?? null,
      analytics: one.with_analytics ? { instruments } : undefined,
      outside: archive.dir,
      step,
    });
    const rows = files.flatMap((file) => file.tables).reduce((sum, table) => sum + Number(table.rows), 0);
    return { out, result: "done", rows, fingerprint, error: null };
  } catch (thrown) {
    const { code, message, hint, place, scope } = RunvaultError.from(thrown);
    // hints about exports name command line options
    const own = hint?.replaceAll("--out", "after.exports.N.out").replaceAll("--format", "format");
    const error = new RunvaultError(code, message.replaceAll("--out", "out"), {
      ...{ cause: thrown, place, scope },
      ...(own === undefined ? {} : { hint: own }),
    });
    return { out, result: "failed", rows: null, error };
  }
}

/** The committed manifests by instance and run, without runs that were removed meanwhile. */
async function manifestsOf({ archive, runs }: JobExportInput): Promise<readonly Manifest[]> {
  const found: Manifest[] = [];
  for (const run of runs) {
    const manifest = await archive.manifest(run);
    if (manifest !== null) found.push(manifest);
  }
  const keyOf = ({ instanceId, runId }: RunRef) => JSON.stringify([instanceId, runId]);
  return found.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/**
 * The sources of an export's rows and how they are chosen: hashes of all Parquet files with such rows. A moving time
 * window changes nothing until rows drop out of it.
 */
function fingerprintOf(
  archive: Archive,
  one: JobExport,
  {
    chosen,
    instruments,
  }: { readonly chosen: readonly Table[]; readonly instruments: InstrumentsFile | null },
  manifests: readonly Manifest[],
  from: Nanoseconds | undefined,
): string {
  const hash = createHash("sha256");
  const add = (...parts: unknown[]) => void hash.update(`${JSON.stringify(parts)}\n`);
  const { format, partition = null, decimals, symbols = null } = one;
  // with partitions, the files have had other names
  add(
    partition === null ? "export 1" : "export 2",
    archive.id,
    one.out,
    format,
    partition,
    decimals,
    symbols,
  );
  if (one.with_analytics) add("analytics", instruments?.entries ?? null);
  let isCut = false;
  for (const { name } of chosen) {
    add(name, archive.exactTypes(name));
    for (const manifest of manifests) {
      const { instanceId, runId, run, state, horizon } = manifest;
      // a database has a table of the runs, too
      if (format === "duckdb") add(instanceId, runId, run, state, horizon);
      const files = (provenView(manifest.tables[name])?.parquet ?? []).filter(
        ({ last }) => from === undefined || BigInt(last.ts) >= from,
      );
      isCut ||= from !== undefined && files.some(({ first }) => BigInt(first.ts) < from);
      if (files.length > 0)
        add(
          instanceId,
          runId,
          files.map(({ sha256 }) => sha256),
        );
    }
  }
  // only a window that starts within a file affects which of its rows are included
  add(isCut ? from?.toString() : null);
  return hash.digest("hex");
}

async function isThere(out: string): Promise<boolean> {
  return await stat(out).then(
    () => true,
    () => false,
  );
}
