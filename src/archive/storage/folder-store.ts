import type { BigIntStats } from "node:fs";
import { link, lstat, readdir, realpath, rm } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import type { Layout } from "../layout.ts";
import { openArchiveFile, readOpened } from "./archive-file.ts";
import {
  asideOwner,
  hasNoLinks,
  isMissing,
  moveFile,
  removeIfEmpty,
  replaceFile,
  setFileBits,
  syncFolder,
  writeAside,
} from "./fsync-files.ts";
import { permissionsAt } from "./permissions.ts";
import { lstatOrNull, makeRealFolder, misplaced, requireRealFolder } from "./real-folder.ts";
import type { Body, ByteSpan, NewObject, Store, StoredObject } from "./store.ts";

/** An archive's files in its folder. Keys are relative paths; only regular files in real folders are objects. */
export class FolderStore implements Store {
  readonly #layout: Layout;
  readonly #root: string;
  #realRoot: string | undefined;

  /** `root` is the archive's folder, or its external scratch folder. */
  constructor(layout: Layout, root = layout.dir) {
    this.#layout = layout;
    this.#root = root;
  }

  async get(key: string, most: number, range?: ByteSpan): Promise<Buffer | null> {
    const path = this.#path(key);
    try {
      return await readOpened(await openArchiveFile(this.#layout, path, most), path, range);
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  async head(key: string): Promise<StoredObject | null> {
    const path = this.#path(key);
    if (!(await this.#isInside(path))) return null;
    const found = await lstatExactly(path);
    if (found === null) return null;
    if (!found.isFile()) throw misplaced(path, found, "file");
    return storedObject(key, found);
  }

  async *list(prefix: string): AsyncGenerator<StoredObject> {
    const names = await this.names(prefix);
    for (let at = 0; at < names.length; at += atOnce) {
      const some = names.slice(at, at + atOnce);
      // the folder was checked when its names were read
      const found = await Promise.all(some.map((name) => this.#objectIn(prefix, name)));
      for (const [index, name] of some.entries()) {
        if (name.endsWith("/")) yield* this.list(`${prefix}${name}`);
        else if (found[index] !== null) yield found[index]!;
      }
    }
  }

  async names(prefix: string): Promise<string[]> {
    const folder = prefix === "" ? this.#root : this.#path(prefix.replace(/\/$/, ""));
    if (!(await requireRealFolder(this.#layout, folder))) return [];
    const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
      // removed since it was listed
      if (isMissing(error)) return [];
      throw RunvaultError.from(error, { place: { file: folder } });
    });
    const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
    return names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  }

  async putIfAbsent(key: string, body: Body, written?: () => void): Promise<string | null> {
    const path = this.#path(key);
    const folder = dirname(path);
    const mode = await this.#makeFolder(folder);
    if (!(await this.#create(path, body, mode, written))) return null;
    await syncFolder(folder);
    return await tokenAt(path);
  }

  /** Checks and syncs a folder once, whatever the number of its files. */
  async putAllIfAbsent(objects: Iterable<NewObject>): Promise<string[]> {
    const folders = new Map<string, { readonly mode: number; readonly names: ReadonlySet<string> }>();
    const taken: string[] = [];
    for (const { key, body } of objects) {
      const path = this.#path(key);
      const folder = dirname(path);
      let known = folders.get(folder);
      if (known === undefined) {
        const mode = await this.#makeFolder(folder);
        known = { mode, names: new Set(await readdir(folder)) };
        folders.set(folder, known);
      }
      if (known.names.has(basename(path))) taken.push(key);
      else await this.#move(path, body, known.mode);
    }
    for (const folder of folders.keys()) await syncFolder(folder);
    return taken;
  }

  async replaceIf(
    key: string,
    body: Uint8Array,
    token: string,
    written?: () => void,
  ): Promise<string | null> {
    const path = this.#path(key);
    // the caller holds the run's or archive's lock: nobody interferes between this check and the rename
    if ((await this.head(key))?.token !== token) return null;
    await replaceFile(path, body, (await permissionsAt(this.#layout, path)).file, written);
    return await tokenAt(path);
  }

  /** Removes a symbolic link itself. Then removes empty folders, except the archive's own. */
  async remove(keys: readonly string[]): Promise<void> {
    const folders = new Set<string>();
    for (const key of keys) {
      const path = this.#path(key);
      if (!folders.has(dirname(path)) && !(await requireRealFolder(this.#layout, dirname(path)))) continue;
      await rm(path, { force: true });
      folders.add(dirname(path));
    }
    for (const folder of folders) {
      await this.#syncStanding(folder);
      for (let one = folder; relative(this.#root, one).includes(sep); one = dirname(one))
        await removeIfEmpty(one);
    }
  }

  async localFile(key: string): Promise<string> {
    const path = this.#path(key);
    if ((await this.head(key)) !== null) return path;
    throw Object.assign(new Error(`ENOENT: no such file, ${path}`), { code: "ENOENT" });
  }

  nameOf(key: string): string {
    return this.#path(key);
  }

  /** Checks a file's folder like `requireRealFolder`, with one system call if nothing is wrong. */
  async #isInside(path: string): Promise<boolean> {
    const folder = dirname(path);
    try {
      this.#realRoot ??= await realpath(this.#root);
      if ((await realpath(folder)) === join(this.#realRoot, relative(this.#root, folder))) return true;
    } catch {
      // checking each part shows what is wrong
    }
    return await requireRealFolder(this.#layout, folder);
  }

  /** Syncs a folder or, if another job has emptied and removed it, its nearest remaining parent. */
  async #syncStanding(folder: string): Promise<void> {
    try {
      await syncFolder(folder);
    } catch (error) {
      if (!isMissing(error) || folder === this.#root) throw error;
      await this.#syncStanding(dirname(folder));
    }
  }

  /** Creates a folder if missing, and returns the permissions for files in it. */
  async #makeFolder(folder: string): Promise<number> {
    await makeRealFolder(this.#layout, folder);
    return (await permissionsAt(this.#layout, folder)).file;
  }

  async #objectIn(prefix: string, name: string): Promise<StoredObject | null> {
    if (name.endsWith("/") || asideOwner(name) !== null) return null;
    const key = `${prefix}${name}`;
    // null if it was removed since the folder was read
    const found = await lstatExactly(this.#path(key));
    return found?.isFile() ? storedObject(key, found) : null;
  }

  /** Moves a file to a name that nobody else uses meanwhile. */
  async #move(path: string, body: Body, mode: number): Promise<void> {
    const from = body instanceof Uint8Array ? await writeAside(path, body, mode) : body.syncedFile;
    await moveFile(from, path, mode);
  }

  /** False if the name is taken; on file systems with hard links this is atomic. */
  async #create(path: string, body: Body, mode: number, written?: () => void): Promise<boolean> {
    const isBytes = body instanceof Uint8Array;
    const from = isBytes ? await writeAside(path, body, mode) : body.syncedFile;
    let isGiven = false;
    try {
      if (!isBytes) await setFileBits(from, mode);
      written?.();
      isGiven = await linkOrMove(from, path);
      return isGiven;
    } finally {
      if (isBytes || isGiven) await rm(from, { force: true });
    }
  }

  #path(key: string): string {
    const path = join(this.#root, key);
    if (key === "" || relative(this.#root, path).split(sep).join("/") !== key) {
      throw new RunvaultError("internal", `${JSON.stringify(key)} is no key`);
    }
    return path;
  }
}

/** Names of a folder that are examined at once. */
const atOnce = 64;

/** Gives a file this name, and may leave its old one; false if the name is taken. */
async function linkOrMove(file: string, path: string): Promise<boolean> {
  try {
    await link(file, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    if (!hasNoLinks(error)) throw RunvaultError.from(error, { place: { file: path } });
  }
  if ((await lstatOrNull(path)) !== null) return false;
  await moveFile(file, path);
  return true;
}

async function lstatExactly(path: string): Promise<BigIntStats | null> {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    if (isMissing(error)) return null;
    throw RunvaultError.from(error, { place: { file: path } });
  }
}

function storedObject(key: string, found: BigIntStats): StoredObject {
  const { size, mtimeNs, ctimeNs } = found;
  // mtime can be set by anyone
  const modifiedAt = mtimeNs > ctimeNs ? mtimeNs : ctimeNs;
  return { key, size: Number(size), modifiedAt, token: tokenOf(found) };
}

/** Null if the file was removed meanwhile. */
async function tokenAt(path: string): Promise<string | null> {
  const found = await lstatExactly(path);
  return found === null ? null : tokenOf(found);
}

/** Distinguishes a file from its replacement, and from itself after a write. */
function tokenOf({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
}
