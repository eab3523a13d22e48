import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { type Archive, openArchive } from "../src/archive/archive.ts";
import { type Manifest, manifestText, type TableState } from "../src/archive/manifest.ts";
import { identifier, literal } from "../src/archive/sql.ts";
import { type TableName, tableNamed } from "../src/model/table.ts";

export interface BuiltRun {
  readonly instanceId: string;
  readonly runId: string;
  readonly tables: Partial<Record<TableName, { readonly state: TableState; readonly rows: number }>>;
}

export const firstTs = 1_640_995_260_000_000_001n;

/** A small archive with real Parquet files, made by DuckDB itself: row i of a table has seq i and ts_event firstTs + i. */
export async function buildArchive(
  runs: readonly BuiltRun[],
  name = "archive",
): Promise<{ archive: Archive; dir: string; dispose(): Promise<void> }> {
  const root = await mkdtemp(join(tmpdir(), "runvault-test-"));
  const dir = join(root, name);
  const archive = await openArchive(dir, { create: true });
  const instance = await DuckDBInstance.create(":memory:", { threads: "2" });
  const connection = await instance.connect();
  for (const run of runs) {
    const manifest = emptyManifest(run);
    await mkdir(archive.layout.dataDir(run), { recursive: true });
    for (const [table, { state, rows }] of Object.entries(run.tables) as [
      TableName,
      { state: TableState; rows: number },
    ][]) {
      const file = `${table}-all-g1.parquet`;
      const columns = tableNamed(table).columns.map(
        ({ name, kind }) => `${valueSql(run, name, kind)} AS ${identifier(name)}`,
      );
      const path = join(archive.layout.dataDir(run), file);
      await connection.run(
        `COPY (SELECT ${columns.join(", ")} FROM range(${rows}) t(i)) TO ${literal(path)} (FORMAT parquet, COMPRESSION zstd)`,
      );
      manifest.tables[table] = {
        state,
        grain: "all",
        certificate: null,
        exactTypes: { ...archive.exactTypes(table) },
        segments: [],
        parquet: [
          {
            file,
            bucket: "all",
            rows,
            storedBytes: 1,
            sha256: "0".repeat(64),
            first: { ts: String(firstTs), seq: "0" },
            last: { ts: String(firstTs + BigInt(rows) - 1n), seq: String(rows - 1) },
          },
        ],
        quarantine: [],
        drift: [],
        storageVersion: "v1",
        error: null,
      };
    }
    const file = archive.layout.manifestFile(run);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, manifestText(manifest));
  }
  connection.closeSync();
  instance.closeSync();
  return { archive, dir, dispose: () => rm(root, { recursive: true, force: true }) };
}

function valueSql(run: BuiltRun, name: string, kind: string): string {
  if (name === "run_id") return literal(run.runId);
  if (name === "instance_id") return literal(run.instanceId);
  switch (kind) {
    case "uint64":
      return name === "seq" ? "i::UBIGINT" : "18446744073709551615::UBIGINT";
    case "int64":
      return "i::BIGINT";
    case "uint32":
      return "1::UINTEGER";
    case "timestamp":
      return `make_timestamp_ns(${firstTs} + i)`;
    case "exact":
      return name === "fee" ? "NULL::DECIMAL(18,9)" : "(123456789.000000001 + i)::DECIMAL(18,9)";
    case "double":
      return "CASE WHEN i = 0 THEN 'NaN'::DOUBLE ELSE i / 4 END";
    default:
      return name === "symbol" ? "'BTC'" : "''";
  }
}

function emptyManifest({ instanceId, runId, tables }: BuiltRun): Manifest {
  const states = Object.values(tables).map(({ state }) => state);
  return {
    format: 1,
    instanceId,
    runId,
    generation: 1,
    state: states.every((state) => state === "COMPLETE") ? "COMPLETE" : "INCOMPLETE",
    run: { status: "FINISHED", started: String(firstTs), ended: null, final: true, storageVersion: "v1" },
    source: "http://127.0.0.1/api/v1",
    horizon: null,
    tables: {},
    documents: {},
    tool: "test",
    startedAt: "2026-01-01T00:00:00.000Z",
    committedAt: "2026-01-01T00:00:01.000Z",
    durationMs: 1,
    retries: 0,
  };
}
