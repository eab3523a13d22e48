import { readdir, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { Archive } from "../archive.ts";
import type { Layout } from "../layout.ts";
import type { Manifest } from "../manifest/manifest.ts";
import { isMissing, linkOrCopy, removeIfEmpty, syncFolder } from "../storage/fsync-files.ts";
import { localFiles } from "../storage/local-files.ts";
import { ownFiles } from "../storage/own-names.ts";
import {
  lstatOrNull,
  makeRealFolder,
  requireRealFolder,
  requireRealFolders,
  requireReplaceable,
} from "../storage/real-folder.ts";
import { linkedParquet } from "../write/commit.ts";
import type { Step } from "../write/run-journal.ts";
import { removeOwnFiles } from "./remove-own.ts";

/**
 * Rebuilds a table's folder for globs from these manifests, which are all of the archive's: built aside, then renamed
 * into place, so that nobody sees a mix of old and new links. Files that people put into the old folder are kept, and
 * so are links of runs that are not archived. Under the archive's lock and those of all runs; the next call first
 * cleans up after a kill.
 */
export async function replaceLinks(
  archive: Archive,
  name: TableName,
  manifests: readonly Manifest[],
  step: Step,
): Promise<void> {
  const swap = new Swap(archive, name, manifests);
  await swap.settle();
  await swap.requirePlace();
  try {
    await swap.makeNext();
    // between the two renames the folder is missing for a moment, which readers report
    await makeRealFolder(archive.layout, dirname(swap.folder));
    await rename(swap.folder, swap.former).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === "EXDEV") throw onTwoDisks(swap.folder, error);
      if (!isMissing(error)) throw error;
    });
    step("tables-removed");
    await rename(swap.next, swap.folder).catch((error: NodeJS.ErrnoException) => {
      throw error.code === "EXDEV" ? onTwoDisks(swap.folder, error) : error;
    });
    await syncFolder(dirname(swap.folder));
    step("tables-replaced");
  } finally {
    await swap.settle();
  }
}

function onTwoDisks(folder: string, cause: unknown): RunvaultError {
  return new RunvaultError("storage_failed", "this folder is on another disk than staging/", {
    cause,
    place: { file: folder },
    hint: "Unmount it so that a rename can replace it, then run the same command again.",
  });
}

class Swap {
  readonly folder: string;
  readonly next: string;
  readonly former: string;
  readonly #archive: Archive;
  readonly #layout: Layout;
  readonly #name: TableName;
  readonly #manifests: readonly Manifest[];

  constructor(archive: Archive, name: TableName, manifests: readonly Manifest[]) {
    const { layout } = archive;
    const aside = layout.tablesAside(name);
    this.folder = layout.tablesDir(name);
    this.next = join(aside, "next");
    this.former = join(aside, "former");
    this.#archive = archive;
    this.#layout = layout;
    this.#name = name;
    this.#manifests = manifests;
  }

  /** Throws `archive_damaged` if something foreign is in the place of a link. */
  async requirePlace(): Promise<void> {
    const dirs = this.#manifests.map((manifest) => this.#layout.tableDir(this.#name, manifest));
    await requireRealFolders(this.#layout, [this.next, this.former, ...dirs]);
    for (const [index, dir] of dirs.entries()) {
      for (const { bucket } of linkedParquet(this.#manifests[index]!, this.#name)) {
        const file = join(dir, `${bucket}.parquet`);
        requireReplaceable(file, await lstatOrNull(file));
      }
    }
  }

  async makeNext(): Promise<void> {
    await makeRealFolder(this.#layout, this.next);
    for (const manifest of this.#manifests) {
      const files = linkedParquet(manifest, this.#name);
      const dir = this.#layout.runDir(this.next, manifest);
      if (files.length > 0) await makeRealFolder(this.#layout, dir);
      // throws if a link would be linked, or its target copied
      const committed = await localFiles(this.#archive, manifest, files);
      for (const [index, { bucket }] of files.entries()) {
        await linkOrCopy(committed[index]!, join(dir, `${bucket}.parquet`));
      }
    }
  }

  /**
   * Leaves nothing aside: foreign files of an old folder go into the new one or, without a new one, everything goes
   * back.
   */
  async settle(): Promise<void> {
    if (await requireRealFolder(this.#layout, this.former)) {
      if (await requireRealFolder(this.#layout, this.folder)) await this.#carryOver();
      else {
        await makeRealFolder(this.#layout, dirname(this.folder));
        await rename(this.former, this.folder);
      }
    }
    await this.#removeNext();
    await removeIfEmpty(dirname(this.next));
  }

  /** Removes links of the new folder's runs from the old one, and moves the rest. */
  async #carryOver(): Promise<void> {
    const runs = new Set(this.#manifests.map((manifest) => this.#layout.runDir(this.former, manifest)));
    const instances = new Set([...runs].map((dir) => dirname(dir)));
    for (const instance of await this.#pathsIn(this.former)) {
      if (!instances.has(instance)) {
        await this.#carry(instance);
        continue;
      }
      for (const run of await this.#pathsIn(instance)) {
        if (!runs.has(run)) {
          await this.#carry(run);
          continue;
        }
        for (const name of await removeOwnFiles(this.#layout, run, ownFiles.tables))
          await this.#carry(join(run, name));
        await removeIfEmpty(run);
      }
      await removeIfEmpty(instance);
    }
    await removeIfEmpty(this.former);
  }

  async #removeNext(): Promise<void> {
    for (const instance of await this.#pathsIn(this.next)) {
      for (const run of await this.#pathsIn(instance)) {
        await removeOwnFiles(this.#layout, run, ownFiles.tables);
        await removeIfEmpty(run);
      }
      await removeIfEmpty(instance);
    }
    await removeIfEmpty(this.next);
  }

  async #carry(path: string): Promise<void> {
    const to = join(this.folder, path.slice(this.former.length + 1));
    await makeRealFolder(this.#layout, dirname(to));
    if ((await lstatOrNull(to)) !== null) {
      throw new RunvaultError(
        "archive_damaged",
        `this cannot be moved back to ${to}, which now holds another file`,
        {
          place: { file: path },
          hint: "Move one of the two out of the archive, then run the same command again.",
        },
      );
    }
    await rename(path, to);
  }

  /** What is in a folder; nothing if there is none. */
  async #pathsIn(folder: string): Promise<string[]> {
    if (!(await requireRealFolder(this.#layout, folder))) return [];
    return (await readdir(folder)).sort().map((name) => join(folder, name));
  }
}
