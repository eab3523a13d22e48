import { LRUCache } from "lru-cache";
import type { RunRef } from "../../model/source.ts";
import type { Archive } from "../archive.ts";
import type { Manifest } from "./manifest.ts";

/** Manifests of runs asked for again and again: a large one takes tens of milliseconds to read and check. */
const mostKept = 32;

/**
 * Manifests as they are committed now, read again only where the file is another than before. A commit replaces the file
 * as a whole, so its inode, time and size tell.
 */
export class ManifestCache {
  readonly #archive: Archive;
  readonly #kept = new LRUCache<string, { mark: string; manifest: Manifest }>({ max: mostKept });

  constructor(archive: Archive) {
    this.#archive = archive;
  }

  /** The committed manifest of a run; null when there is none. Throws `archive_damaged`. */
  async manifest(run: RunRef): Promise<Manifest | null> {
    const file = this.#archive.layout.manifestFile(run);
    const mark = await this.#markOf(file);
    if (mark === null) return null;
    const kept = this.#kept.get(file);
    const { instanceId, runId } = run;
    // shortened ids may share a path; whose manifest it is, is the archive's to say
    const own = kept?.manifest.instanceId === instanceId && kept.manifest.runId === runId;
    if (kept?.mark === mark && own) return kept.manifest;
    const manifest = await this.#archive.manifest(run);
    this.#kept.delete(file);
    // a commit in between would leave the mark of the file before with the manifest of the one after
    if (manifest !== null && (await this.#markOf(file)) === mark) this.#kept.set(file, { mark, manifest });
    return manifest;
  }
  async #markOf(file: string): Promise<string | null> {
    const { layout, store } = this.#archive;
    return (await store.head(layout.keyOf(file)))?.token ?? null;
  }
}
