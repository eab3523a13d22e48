import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import type { Manifest } from "../archive/manifest.ts";
import { overtaken } from "../archive/overtaken.ts";
import type { RunvaultError } from "../model/error.ts";
import { type WithheldTable, withheldTables } from "./committed-parquet.ts";
import { firstMissing, missingFile, pathsOf, presentFiles } from "./present-files.ts";
import { asQueryError } from "./query-error.ts";
import { createViews, type QueryArchive } from "./query-views.ts";

export interface ViewOptions {
  /** Manifests of the runs whose rows the views show. */
  readonly readManifests: () => Promise<readonly Manifest[]>;
  /** Also the tables that are neither COMPLETE nor OPEN. */
  readonly allowIncomplete: boolean;
  /** Memory DuckDB may use before it spills to the temporary folder, in MiB. */
  readonly memoryLimitMb: number;
  readonly threads: number;
  /** Ends the opening early. */
  readonly signal?: AbortSignal | undefined;
}

/** An in-memory DuckDB with the views of an archive, which show the generation that was committed when it was opened. */
export interface OpenViews extends AsyncDisposable {
  readonly connection: DuckDBConnection;
  readonly manifests: readonly Manifest[];
  /** Every committed file behind the views. */
  readonly files: readonly string[];
  /** DuckDB's error as ours; `history_query_failed` where commits since the opening took files away. */
  errorOf(error: unknown): Promise<RunvaultError>;
  /** Tables of runs that the views leave out for their state. */
  readonly withheld: readonly WithheldTable[];
}

/** Opens the views of an archive. Throws `archive_damaged` where a committed file is missing. */
export async function openViews(archive: QueryArchive, options: ViewOptions): Promise<OpenViews> {
  const { readManifests, allowIncomplete, memoryLimitMb, threads, signal } = options;
  const { manifests, files } = await presentFiles(archive, readManifests, allowIncomplete);
  const every = pathsOf(files);
  signal?.throwIfAborted();
  const spill = await mkdtemp(join(tmpdir(), "runvault-query-"));
  const errorOf = async (error: unknown) => {
    const known = asQueryError(error, every);
    // DuckDB looks for a missing file as for a glob, which a locked query may not
    const refused = known.message.startsWith("Permission Error");
    if (known.code !== "archive_damaged" && !refused) return known;
    const missing = await firstMissing(every);
    if (missing === null) return known;
    return (await overtaken(archive, manifests, error)) ?? missingFile(missing, error);
  };
  let instance: DuckDBInstance | undefined;
  const close = async () => {
    instance?.closeSync();
    await rm(spill, { recursive: true, force: true });
  };
  try {
    instance = await DuckDBInstance.create(":memory:", {
      autoinstall_known_extensions: "false",
      autoload_known_extensions: "false",
      allow_persistent_secrets: "false",
      memory_limit: `${memoryLimitMb}MiB`,
      threads: String(threads),
      temp_directory: spill,
      preserve_insertion_order: "true",
    });
    const connection = await instance.connect();
    await connection.run("SET TimeZone = 'UTC'");
    await createViews(connection, archive, manifests, files);
    signal?.throwIfAborted();
    return {
      connection,
      manifests,
      files: every,
      errorOf,
      withheld: allowIncomplete ? [] : withheldTables(manifests),
      [Symbol.asyncDispose]: async () => {
        connection.closeSync();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw await errorOf(error);
  }
}
