import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { holdForReading } from "../../archive/read/readings.ts";
import { supersededGeneration } from "../../archive/read/superseded-generation.ts";
import { WholeFiles } from "../../archive/read/whole-files.ts";
import type { Store } from "../../archive/storage/store.ts";
import { keepByteOrderMarks } from "../../duckdb/byte-order-marks.ts";
import { lockToFiles, openDuckDB } from "../../duckdb/open-duckdb.ts";
import { Disposables } from "../../model/disposables.ts";
import type { RunvaultError } from "../../model/error.ts";
import { type TableName, tableNamed } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { makeTemporaryFolder } from "../../model/temporary-folder.ts";
import { requireWhole } from "../files/committed-parquet.ts";
import { firstMissing, missingFile, pathsOf, presentFiles } from "../files/present-files.ts";
import type { TypedParquet } from "../files/typed-parquet.ts";
import { type Shortfall, shortfallOf } from "../shortfall.ts";
import { asQueryError } from "./query-error.ts";
import { createViews, type QueryArchive, showRows } from "./query-views.ts";

export interface ViewOptions {
  /** Manifests of the runs whose rows the views show. */
  readonly readManifests: () => Promise<readonly Manifest[]>;
  /** Show the latest attempts' rows, proven or not, instead of the proven ones. */
  readonly allowIncomplete: boolean;
  /** Memory DuckDB may use before it spills to the temporary folder, in MiB. */
  readonly memoryLimitMb: number;
  readonly threads: number;
  /** For users' SQL: lets DuckDB access only the committed files, to read them, and these. */
  readonly lockedButFor?: readonly string[];
  /** Ends the opening early. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * An in-memory DuckDB with the views of an archive, which show the generation that was committed when it was opened.
 * Rows must be opened table by table with `show`, so that a damaged file only affects its own table.
 */
export interface OpenViews extends AsyncDisposable {
  readonly connection: DuckDBConnection;
  readonly manifests: readonly Manifest[];
  /** Every committed file that the views may need. */
  readonly files: readonly string[];
  /**
   * Makes the views of these tables show their rows, after checking that every file is as committed. Throws
   * `archive_damaged` if one is not; other tables can still be shown.
   */
  show(names: Iterable<TableName>, signal?: AbortSignal): Promise<void>;
  /** The runs whose files a table's view shows, in the order of its rows. */
  runsOf(name: TableName): readonly RunRef[];
  /** Limits the view of a table to one of the runs that it shows. */
  showOnly(name: TableName, run: RunRef): Promise<void>;
  /** Undoes `showOnly` for a table. */
  showAll(name: TableName): Promise<void>;
  /** DuckDB's error as ours; `history_query_failed` if commits since the opening removed files. */
  errorOf(error: unknown): Promise<RunvaultError>;
  /** Where the views of these tables show less than all. */
  shortfall(names: readonly TableName[]): Shortfall;
}

/** Opens the views of an archive. */
export async function openViews(archive: QueryArchive, options: ViewOptions): Promise<OpenViews> {
  keepByteOrderMarks();
  const { readManifests, allowIncomplete, memoryLimitMb, threads, lockedButFor, signal } = options;
  await using opening = new Disposables();
  const spill = await makeTemporaryFolder("query");
  opening.defer(() => rm(spill, { recursive: true, force: true }));
  // in parallel with the lock, which needs another DuckDB
  const openingDuckDB = openDuckDB({ memoryLimitMb, threads, tempDirectory: spill, utc: true });
  // closed first, because it may read until then; a failure to open is reported below
  const closed = openingDuckDB.then(
    (opened) => () => opened.close(),
    () => () => {},
  );
  opening.use(await holdForReading(archive.layout));
  opening.defer(async () => (await closed)());
  const { manifests, files } = await presentFiles(archive, readManifests, allowIncomplete);
  const every = pathsOf(files);
  signal?.throwIfAborted();
  const errorOf = async (error: unknown) => {
    const known = asQueryError(error, every);
    // DuckDB searches for a missing file as for a glob, which a locked query is not allowed to do
    const refused = known.message.startsWith("Permission Error");
    if (known.code !== "archive_damaged" && !refused) return known;
    const missing = refused ? await firstMissing(archive.store, shown) : null;
    if (refused && missing === null) return known;
    const later = await supersededGeneration(archive, manifests, error);
    return later ?? (missing === null ? known : missingFile(missing, error));
  };
  const shown = new Map<TableName, readonly TypedParquet[]>();
  const whole = new WholeFiles(archive);
  try {
    const duckdb = await openingDuckDB;
    if (lockedButFor !== undefined) await lockToFiles(duckdb, [...every, ...lockedButFor]);
    const { connection } = duckdb;
    await createViews(connection, archive, manifests);
    signal?.throwIfAborted();
    const showOne = async (name: TableName, until: AbortSignal | undefined) => {
      const committed = files.get(name) ?? [];
      await requireWhole(
        whole,
        committed.flatMap((group) => group.files),
        until,
      );
      const groups = await Promise.all(committed.map((group) => localGroup(archive.store, group)));
      await showRows(connection, archive, tableNamed(name), groups);
      shown.set(name, groups);
    };
    const opened = opening.move();
    return {
      show: async (names, until) => {
        for (const name of names) if (!shown.has(name)) await showOne(name, until);
      },
      runsOf: (name) => {
        const files = (shown.get(name) ?? []).flatMap((group) => group.files);
        const runs = files.map(({ instance, run }) => ({ instanceId: instance, runId: run }));
        return [...new Map(runs.map((run) => [JSON.stringify(run), run])).values()];
      },
      showOnly: async (name, { instanceId, runId }) => {
        const groups = (shown.get(name) ?? [])
          .map((group) => ({
            ...group,
            files: group.files.filter(({ instance, run }) => instance === instanceId && run === runId),
          }))
          .filter((group) => group.files.length > 0);
        await showRows(connection, archive, tableNamed(name), groups);
      },
      showAll: async (name) => {
        await showRows(connection, archive, tableNamed(name), shown.get(name) ?? []);
      },
      connection,
      manifests,
      files: every,
      errorOf,
      shortfall: (names) => shortfallOf(manifests, names, allowIncomplete),
      [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
    };
  } catch (error) {
    throw await errorOf(error);
  }
}

/** The same files by their paths on this machine. */
async function localGroup(store: Store, { exactTypes, files }: TypedParquet): Promise<TypedParquet> {
  const local = files.map(async (file) => ({ ...file, file: resolve(await store.localFile(file.key)) }));
  return { exactTypes, files: await Promise.all(local) };
}
