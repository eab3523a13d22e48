import { link, lstat, readdir, rm } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import { openArchiveFile, readOpened } from "../archive-file.ts";
import {
  asideOwner,
  hasNoLinks,
  isMissing,
  moveFile,
  replaceFile,
  setFileBits,
  syncFolder,
  writeAside,
} from "../durable.ts";
import type { Layout } from "../layout.ts";
import { permissionsAt } from "../permissions.ts";
import { lstatOrNull, makeRealFolder, misplaced, requireRealFolder } from "../real-folder.ts";
import { fileMark, markOf } from "./file-mark.ts";
import type { Body, ByteSpan, NewObject, Store, StoredObject } from "./store.ts";

/** The files of an archive in its folder. Keys are paths below it; only regular files in real folders are objects. */
export class FolderStore implements Store {
  readonly #layout: Layout;

  constructor(layout: Layout) {
    this.#layout = layout;
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
    if (!(await requireRealFolder(this.#layout, dirname(path)))) return null;
    const found = await lstat(path, { bigint: true }).catch((error: unknown) => {
      if (isMissing(error)) return null;
      throw RunvaultError.from(error, { place: { file: path } });
    });
    if (found === null) return null;
    if (!found.isFile()) throw misplaced(path, found, "file");
    return { key, size: Number(found.size), modifiedAt: found.mtimeNs, token: fileMark(found) };
  }

  async *list(prefix: string): AsyncGenerator<StoredObject> {
    const folder = this.#path(prefix.replace(/\/$/, ""));
    if (!(await requireRealFolder(this.#layout, folder))) return;
    const entries = await readdir(folder, { withFileTypes: true });
    const keyed = entries.map((entry) => ({
      entry,
      name: entry.isDirectory() ? `${entry.name}/` : entry.name,
    }));
    keyed.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
    for (const { entry, name } of keyed) {
      if (entry.isDirectory()) yield* this.list(`${prefix}${name}`);
      else if (entry.isSymbolicLink()) throw misplaced(join(folder, name), entry, "file");
      else if (entry.isFile() && asideOwner(name) === null) {
        const found = await this.head(`${prefix}${name}`);
        // removed since the folder was read
        if (found !== null) yield found;
      }
    }
  }

  async putIfAbsent(key: string, body: Body): Promise<string | null> {
    const [token] = await this.putAllIfAbsent([{ key, body }]);
    return token!;
  }

  /** One sync a folder, whatever the number of its files. */
  async putAllIfAbsent(objects: readonly NewObject[]): Promise<(string | null)[]> {
    const folders = new Set(objects.map(({ key }) => dirname(this.#path(key))));
    for (const folder of folders) await makeRealFolder(this.#layout, folder);
    const tokens: (string | null)[] = [];
    for (const { key, body } of objects) {
      const path = this.#path(key);
      tokens.push((await this.#create(path, body)) ? await markOf(path) : null);
    }
    for (const folder of folders) await syncFolder(folder);
    return tokens;
  }

  async replaceIf(key: string, body: Uint8Array, token: string): Promise<string | null> {
    const path = this.#path(key);
    // whoever replaces holds the run's lock, or the archive's: nobody comes between this look and the rename
    if ((await this.head(key))?.token !== token) return null;
    await replaceFile(path, body, (await permissionsAt(this.#layout, path)).file);
    return await markOf(path);
  }

  async remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      const path = this.#path(key);
      if (await requireRealFolder(this.#layout, dirname(path))) await rm(path, { force: true });
    }
  }

  async localFile(key: string): Promise<string> {
    const path = this.#path(key);
    const { handle } = await openArchiveFile(this.#layout, path, Number.POSITIVE_INFINITY);
    await handle.close();
    return path;
  }

  /** False where something has the name already. */
  async #create(path: string, body: Body): Promise<boolean> {
    const mode = (await permissionsAt(this.#layout, path)).file;
    if (body instanceof Uint8Array) {
      const aside = await writeAside(path, body, mode);
      try {
        return await this.#give(aside, path);
      } finally {
        await rm(aside, { force: true });
      }
    }
    await setFileBits(body.syncedFile, mode);
    return await this.#give(body.syncedFile, path);
  }

  /** The name is taken by whoever is first, where the file system has links; else it is looked at ahead of the rename. */
  async #give(file: string, path: string): Promise<boolean> {
    try {
      await link(file, path);
      await rm(file);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
      if (!hasNoLinks(error)) throw RunvaultError.from(error, { place: { file: path } });
    }
    if ((await lstatOrNull(path)) !== null) return false;
    await moveFile(file, path);
    return true;
  }

  #path(key: string): string {
    const path = join(this.#layout.dir, key);
    if (key === "" || relative(this.#layout.dir, path).split(sep).join("/") !== key) {
      throw new RunvaultError("internal", `${JSON.stringify(key)} is no key`);
    }
    return path;
  }
}
