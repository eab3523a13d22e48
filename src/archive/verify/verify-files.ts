import { join, relative } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import { countText } from "../../model/text/plural.ts";
import type { Archive } from "../archive.ts";
import type { Holding, Manifest, ParquetFile, QuarantineFile, TableManifest } from "../manifest/manifest.ts";
import { filesOf } from "../manifest/manifest-files.ts";
import { damageOf } from "../storage/damage-of.ts";
import { hashObject } from "../storage/file-hash.ts";
import { FolderStore } from "../storage/folder-store.ts";
import { namesIn } from "../storage/names-in.ts";
import { ownFiles } from "../storage/own-names.ts";
import { lstatOrNull } from "../storage/real-folder.ts";
import type { Store, StoredObject } from "../storage/store.ts";
import { linkedParquet } from "../write/commit.ts";
import type { CheckList, Fault } from "./verify-report.ts";

/** A file in the manifest; a size of undefined was never recorded. */
export interface PromisedFile {
  readonly path: string;
  readonly sha256: string;
  readonly storedBytes: number;
}

/** Whether a verification reads a file, or only checks presence and size. */
export type IsRead = (path: string) => boolean;

/** A table's Parquet and quarantine files; segments are always read whole, and hashed then. */
export function promisedFiles(archive: Archive, manifest: Manifest, table: Holding): PromisedFile[] {
  const data = archive.layout.dataDir(manifest);
  const aside = archive.layout.quarantineDir(manifest);
  return [...inFolder(data, table.parquet), ...inFolder(aside, table.quarantine)];
}

function inFolder(folder: string, files: readonly (ParquetFile | QuarantineFile)[]): PromisedFile[] {
  return files.map(({ file, sha256, storedBytes }) => ({ path: join(folder, file), sha256, storedBytes }));
}

/** What is wrong with a file; null if its size and SHA-256 match. */
export async function faultOfFile(archive: Archive, file: PromisedFile): Promise<Fault | null> {
  const fault = await faultOfSize(archive, file);
  if (fault !== null) return fault;
  const { sha256 } = await hashOf(archive.store, archive.layout.keyOf(file.path), file.storedBytes);
  if (sha256 === file.sha256) return null;
  return {
    detail: `the file's SHA-256 is ${sha256}, but the manifest says ${file.sha256}`,
    files: [file.path],
  };
}

/** Faults of a file that show without reading it. */
export async function faultOfSize(
  { layout, store }: Archive,
  { path, storedBytes }: Omit<PromisedFile, "sha256">,
): Promise<Fault | null> {
  const fault = (detail: string): Fault => ({ detail, files: [path] });
  let found: StoredObject | null;
  try {
    found = await store.head(layout.keyOf(path));
  } catch (error) {
    const damage = damageOf(error);
    const place = error instanceof RunvaultError ? error.place.file : undefined;
    if (place === path) return fault(damage);
    return fault(`not read: ${damage}${place === undefined ? "" : ` (${relative(layout.dir, place)})`}`);
  }
  if (found === null) return fault("the file is missing");
  if (found.size === storedBytes) return null;
  return fault(`the file has ${found.size} bytes, but the manifest says ${storedBytes}`);
}

/** The text about sound files, if only a sample was read. */
export function wholeText(count: number, read: number, what: string): string {
  const others = read === count ? "" : `, ${read} of them read`;
  return `${count} ${what} as committed${others}`;
}

/** Checks the run's documents, byte for byte. Returns the names of damaged ones. */
export async function checkDocuments(
  list: CheckList,
  archive: Archive,
  manifest: Manifest,
  isRead: IsRead,
): Promise<Set<string>> {
  const data = archive.layout.dataDir(manifest);
  const documents = Object.values(manifest.documents);
  const damaged = new Set<string>();
  const faults: Fault[] = [];
  let read = 0;
  for (const { file, sha256, storedBytes } of documents) {
    const promised = { path: join(data, file), sha256, storedBytes };
    const isOne = isRead(promised.path);
    if (isOne) read++;
    const fault = isOne ? await faultOfFile(archive, promised) : await faultOfSize(archive, promised);
    if (fault === null) continue;
    faults.push(fault);
    damaged.add(file);
  }
  list.faults(null, "documents", faults, wholeText(documents.length, read, "documents"));
  return damaged;
}

/**
 * Reports files of ours in the run's folders that the manifest does not name, left by a kill. Replaced files that are
 * kept for an hour are removed by the next job after that. `verifyPlaces` handles foreign files.
 */
export async function checkUnreferenced(
  list: CheckList,
  archive: Archive,
  manifest: Manifest,
): Promise<void> {
  const { data, quarantine } = filesOf(manifest);
  const kept = new Set(manifest.former?.map(({ file }) => file));
  const { layout, store } = archive;
  let keptHere = 0;
  const found: string[] = [];
  for (const [folder, named] of [
    ["data", data],
    ["quarantine", quarantine],
  ] as const) {
    const prefix = layout.committedKey(manifest, folder);
    const names = await store.names(prefix).catch((error: unknown) => {
      // each file reports a problem with its folder
      damageOf(error);
      return [];
    });
    for (const name of names) {
      if (!ownFiles[folder](name) || named.has(name)) continue;
      if (kept.has(name)) keptHere += 1;
      else found.push(store.nameOf(`${prefix}${name}`));
    }
  }
  const forReaders =
    keptHere === 0 ? "" : `, ${countText(keptHere, "replaced file")} kept for readers among them`;
  if (found.length === 0)
    list.add(null, "unreferenced", "ok", `every file is named by the manifest${forReaders}`);
  else
    list.add(
      null,
      "unreferenced",
      "notice",
      `${countText(found.length, "file")} not named by any manifest`,
      found,
    );
}

/** Checks the folder for globs: the same bytes as the committed Parquet, nothing missing or stale. */
export async function checkLinks(
  list: CheckList,
  archive: Archive,
  manifest: Manifest,
  isRead: IsRead,
): Promise<void> {
  for (const name of tableNames) {
    const table = manifest.tables[name];
    const dir = archive.layout.tableDir(name, manifest);
    const wanted = linkedParquet(manifest, name);
    const faults: Fault[] = [];
    for (const { bucket, file, sha256, storedBytes } of wanted) {
      const path = join(dir, `${bucket}.parquet`);
      const committed = join(archive.layout.dataDir(manifest), file);
      const same = await sameBytes(archive, path, committed, storedBytes, isRead(committed) ? sha256 : null);
      if (same === "missing") faults.push({ detail: "missing from the folder of the table", files: [path] });
      if (same === "other")
        faults.push({ detail: "stale: differs from the committed Parquet", files: [path] });
    }
    const names = new Set(wanted.map(({ bucket }) => `${bucket}.parquet`));
    const extra = (await namesIn(dir))
      .filter((file) => ownFiles.tables(file) && !names.has(file))
      .map((file) => join(dir, file));
    if (extra.length > 0)
      faults.push({ detail: `${countText(extra.length, "file")} of no committed bucket`, files: extra });
    if (table === undefined && faults.length === 0) continue;
    list.faults(
      name,
      "links",
      faults,
      `${countText(wanted.length, "bucket")} in the folder of the table`,
      "notice",
    );
  }
}

async function sameBytes(
  { layout }: Archive,
  path: string,
  committed: string,
  storedBytes: number,
  sha256: string | null,
): Promise<"same" | "other" | "missing"> {
  const [link, source] = await Promise.all([lstatOrNull(path), lstatOrNull(committed)]);
  if (link === null) return "missing";
  if (!link.isFile() || link.size !== storedBytes) return "other";
  if (source !== null && link.ino === source.ino && link.dev === source.dev) return "same";
  if (sha256 === null) return link.size === source?.size ? "same" : "other";
  return (await hashOf(new FolderStore(layout), layout.keyOf(path), storedBytes)).sha256 === sha256
    ? "same"
    : "other";
}

async function hashOf(store: Store, key: string, storedBytes: number) {
  try {
    return await hashObject(store, key, storedBytes);
  } catch (error) {
    throw RunvaultError.from(error, { place: { file: store.nameOf(key) } });
  }
}

/** A manifest's tables with their names, in the order of the contract. */
export function tablesOf(manifest: Manifest): [TableName, TableManifest][] {
  return tableNames.flatMap((name) => {
    const table = manifest.tables[name];
    return table === undefined ? [] : [[name, table] satisfies [TableName, TableManifest]];
  });
}
