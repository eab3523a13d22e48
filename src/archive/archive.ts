import { randomUUID } from "node:crypto";
import { readdir } from "node:fs/promises";
import { z } from "zod";
import { type ErrorDetails, RunvaultError } from "../model/error.ts";
import { makeFolder, privateFolder } from "../model/make-folder.ts";
import { parseJson } from "../model/outside-json.ts";
import { defaultExactTypes, type ExactTypes, isDecimalType } from "../model/profile/exact-types.ts";
import { isExtraType } from "../model/profile/extra-column.ts";
import { type TableName, tableNamed, tables } from "../model/profile/table.ts";
import type { RunRef } from "../model/source.ts";
import { Layout } from "./layout.ts";
import type { Manifest } from "./manifest/manifest.ts";
import { manifestPaths } from "./manifest/manifest-paths.ts";
import { parseManifest } from "./manifest/parse-manifest.ts";
import { mostBytes } from "./storage/archive-file.ts";
import { FolderStore } from "./storage/folder-store.ts";
import { asideOwner } from "./storage/fsync-files.ts";
import { misplacedInstances, requireRealFolder } from "./storage/real-folder.ts";
import { removeLeftovers } from "./storage/remove-leftovers.ts";
import { scratchArea } from "./storage/scratch-area.ts";
import type { Store } from "./storage/store.ts";

const columnTypes = z.record(z.string(), z.string()).superRefine((types, context) => {
  for (const [column, type] of Object.entries(types)) {
    if (isDecimalType(type) || isExtraType(column, type)) continue;
    context.addIssue({ code: "custom", path: [column], message: "not a DECIMAL(1…38,scale)" });
  }
});
const typesByTable = z.record(z.string(), columnTypes);

const archiveSchema = z.strictObject({
  format: z.literal(1),
  id: z.uuid(),
  createdAt: z.string(),
  /**
   * DuckDB type of every exact column, by table, and `extra: VARCHAR` if the table's Parquet has that column. Fixed for
   * the whole archive, so files never mix types.
   */
  exactTypes: typesByTable,
  /**
   * The former types, by table, while columns change type. Some runs' Parquet still has these types, and the folders in
   * `tables/` stay as they were.
   */
  widening: typesByTable.optional(),
});

/** An existing archive folder that runvault made. */
export interface Archive {
  readonly dir: string;
  readonly id: string;
  readonly format: number;
  /** When it was created. */
  readonly createdAt: string;
  readonly layout: Layout;
  /** Where everything committed is stored. */
  readonly store: Store;
  /** The types of exact columns when the archive was opened or last refreshed. */
  exactTypes(table: TableName): ExactTypes;
  /** The types of a table before the change in progress; undefined if there is no change. */
  formerTypes(table: TableName): ExactTypes | undefined;
  /** Reads archive.json again, because types may have changed. Throws `archive_damaged`. */
  refresh(): Promise<void>;
  /** Replaces the types and the record of the change in progress, under the archive's lock. */
  replaceTypes(types: ArchiveTypes, written?: () => void): Promise<void>;
  /** The committed description of a run; null if it was never committed. Throws `archive_damaged`. */
  manifest(run: RunRef): Promise<Manifest | null>;
  /** Every committed run, by instance and run id. Throws `archive_damaged`. */
  manifests(): Promise<Manifest[]>;
  /** The files of all manifests, unread, so that an archive of any size can be walked. */
  manifestFiles(): Promise<string[]>;
  /** The manifest in one of these files; null if it has since been removed. Throws `archive_damaged`. */
  manifestIn(file: string): Promise<Manifest | null>;
}

/** Types of exact columns by table, and the previous types of tables that are being changed. */
export interface ArchiveTypes {
  readonly exactTypes: Readonly<Record<string, ExactTypes>>;
  readonly widening: Readonly<Record<string, ExactTypes>>;
}

export interface OpenOptions {
  /** Creates the archive if the folder is missing or empty. */
  readonly create?: boolean;
  /** Types of exact columns for a new archive, by table and column; an existing archive keeps its own. */
  readonly exactTypes?: Readonly<Record<string, ExactTypes>>;
  /** Folder outside the archive for fetched data that is not committed yet. Default: in the archive. */
  readonly scratch?: string | undefined;
  /** Where everything committed is stored. Default: the folder itself. */
  readonly store?: (layout: Layout) => Store;
  /** Called at each named step of creating an archive; a test kills the process at each. */
  readonly step?: (name: string) => void;
}

/** Opens an archive folder. Throws `not_an_archive` if the folder is missing or is something else. */
export async function openArchive(dir: string, options: OpenOptions = {}): Promise<Archive> {
  const found = await findArchive(dir, options);
  if (found !== null) return found;
  if (!options.create) {
    const there = (await listIfThere(dir)) !== null;
    const message = there ? "there is no archive in this folder" : "there is no such folder";
    throw new RunvaultError("not_an_archive", message, {
      place: { file: dir },
      hint: "Point --archive or RUNVAULT_ARCHIVE at an archive, or create one with `runvault archive`.",
    });
  }
  const layout = new Layout(dir);
  // before the archive is created, so that a wrong scratch folder leaves nothing behind
  if (options.scratch !== undefined) await scratchArea(options.scratch, dir, "");
  try {
    // to share the archive, its owner sets the mode of the root folder; everything below follows it
    await makeFolder(dir, privateFolder);
    const text = JSON.stringify(newArchive(options.exactTypes ?? {}), null, 2);
    // if two processes create it at once, the first wins
    await storeOf(layout, options).putIfAbsent(
      layout.keyOf(layout.archiveFile),
      Buffer.from(`${text}\n`),
      () => options.step?.("archive-file-written"),
    );
  } catch (error) {
    throw RunvaultError.from(error, { place: { file: dir } });
  }
  return await openArchive(dir, { ...options, create: false });
}

function storeOf(layout: Layout, { store }: Pick<OpenOptions, "store">): Store {
  return store?.(layout) ?? new FolderStore(layout);
}

/** The archive in a folder; null if the folder is missing or empty. Throws `not_an_archive` on anything else. */
export async function findArchive(
  dir: string,
  options: Pick<OpenOptions, "scratch" | "store"> = {},
): Promise<Archive | null> {
  const inside = new Layout(dir);
  const { archiveFile } = inside;
  const key = inside.keyOf(archiveFile);
  const store = storeOf(inside, options);
  let token = "";
  const read = async () => {
    // read before the data that it tells apart
    token = (await store.head(key))?.token ?? "";
    return await textIn(store, key, mostBytes.archive);
  };
  const text = await read();
  if (text === null) {
    const names = await listIfThere(dir);
    // a process killed while creating an archive leaves its first file under a temporary name
    if (names === null || names.every((name) => asideOwner(name) === "archive.json")) return null;
    throw new RunvaultError(
      "not_an_archive",
      "the folder is not empty and not an archive: it has no archive.json",
      {
        place: { file: dir },
        hint: "Point --archive or RUNVAULT_ARCHIVE at an archive, or at a folder that is empty or does not exist yet.",
      },
    );
  }
  let identity = parseArchive(text, archiveFile);
  const { scratch } = options;
  const layout = new Layout(dir, scratch === undefined ? null : await scratchArea(scratch, dir, identity.id));
  const refresh = async () => {
    const now = await read();
    if (now === null)
      throw damagedArchive("archive.json has disappeared", { place: { file: layout.archiveFile } });
    identity = parseArchive(now, layout.archiveFile);
  };
  return {
    dir,
    id: identity.id,
    format: identity.format,
    createdAt: identity.createdAt,
    layout,
    store,
    // a table or column newer than the archive has its usual type
    exactTypes: (table) => ({ ...defaultExactTypes(tableNamed(table)), ...identity.exactTypes[table] }),
    formerTypes: (table) => identity.widening?.[table],
    refresh,
    replaceTypes: async ({ exactTypes, widening }, written) => {
      const { widening: _, ...rest } = identity;
      const next = {
        ...rest,
        exactTypes,
        ...(Object.keys(widening).length === 0 ? {} : { widening }),
      };
      const bytes = Buffer.from(`${JSON.stringify(next, null, 2)}\n`);
      if ((await store.replaceIf(key, bytes, token, written)) === null) {
        throw new RunvaultError("locked", "archive.json was replaced in the meantime", {
          place: { file: archiveFile },
          hint: "Run the same command again.",
        });
      }
      await removeLeftovers(store, key);
      await refresh();
    },
    manifest: (run) => readManifest(layout, store, run),
    manifests: () => readManifests(layout, store),
    manifestFiles: () => listManifests(layout, store),
    manifestIn: (file) => readManifestIn(layout, store, file),
  };
}

function newArchive(exactTypes: Readonly<Record<string, ExactTypes>>): z.infer<typeof archiveSchema> {
  const types = tables.map((table) => [
    table.name,
    { ...defaultExactTypes(table), ...exactTypes[table.name] },
  ]);
  return {
    format: 1,
    id: randomUUID(),
    createdAt: new Date().toISOString(),
    exactTypes: Object.fromEntries(types),
  };
}

function parseArchive(text: string, file: string): z.infer<typeof archiveSchema> {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (cause) {
    throw damagedArchive("archive.json is not JSON", { cause, place: { file } });
  }
  const format = (value as { format?: unknown } | null)?.format;
  if (typeof format === "number" && format > 1) {
    throw new RunvaultError(
      "not_an_archive",
      `the archive has format ${format}, but this runvault reads format 1`,
      {
        place: { file },
        hint: "Use a newer runvault.",
      },
    );
  }
  const parsed = archiveSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw damagedArchive(`archive.json is not valid: ${z.prettifyError(parsed.error)}`, { place: { file } });
}

function damagedArchive(message: string, details: ErrorDetails): RunvaultError {
  const hint = "Restore archive.json from a backup; the runs beside it are untouched.";
  return new RunvaultError("archive_damaged", message, { hint, ...details });
}

async function textIn(store: Store, key: string, most: number): Promise<string | null> {
  return (await store.get(key, most))?.toString("utf8") ?? null;
}

async function readManifest(layout: Layout, store: Store, run: RunRef): Promise<Manifest | null> {
  const file = layout.manifestFile(run);
  const text = await textIn(store, layout.keyOf(file), mostBytes.manifest);
  if (text === null) return null;
  const manifest = parseManifest(text, file);
  if (manifest.instanceId !== run.instanceId || manifest.runId !== run.runId) {
    throw misplacedManifest(manifest, file);
  }
  return manifest;
}

/** The error for a manifest that stands in another run's place. */
export function misplacedManifest({ instanceId, runId }: RunRef, file: string): RunvaultError {
  return new RunvaultError(
    "archive_damaged",
    `this manifest belongs to another run, ${instanceId}/${runId}`,
    {
      place: { file },
      hint: "Move the file out of the archive; a copy would count its run twice.",
    },
  );
}

async function listManifests(layout: Layout, store: Store): Promise<string[]> {
  await requireRealFolder(layout, layout.runsDir);
  const [misplacedOne] = await misplacedInstances(layout);
  if (misplacedOne !== undefined) throw misplacedOne.error;
  return await manifestPaths(layout, store);
}

async function readManifestIn(layout: Layout, store: Store, file: string): Promise<Manifest | null> {
  const text = await textIn(store, layout.keyOf(file), mostBytes.manifest);
  if (text === null) return null;
  const manifest = parseManifest(text, file);
  if (layout.manifestFile(manifest) !== file) throw misplacedManifest(manifest, file);
  return manifest;
}

async function readManifests(layout: Layout, store: Store): Promise<Manifest[]> {
  const found: Manifest[] = [];
  for (const file of await listManifests(layout, store)) {
    const manifest = await readManifestIn(layout, store, file);
    // a run removed between listing and reading no longer exists
    if (manifest !== null) found.push(manifest);
  }
  const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  return found.sort((a, b) => order(a.instanceId, b.instanceId) || order(a.runId, b.runId));
}

async function listIfThere(dir: string): Promise<string[] | null> {
  try {
    return (await readdir(dir)).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    if ((error as NodeJS.ErrnoException).code === "ENOTDIR") {
      throw new RunvaultError("not_an_archive", "this is a file, not a folder", {
        cause: error,
        place: { file: dir },
      });
    }
    throw RunvaultError.from(error, { place: { file: dir } });
  }
}
