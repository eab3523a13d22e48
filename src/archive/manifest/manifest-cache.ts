import { LRUCache } from "lru-cache";
import type { RunRef } from "../../model/source.ts";
import type { Archive } from "../archive.ts";
import type { Manifest } from "./manifest.ts";

/** Number of manifests kept for repeated use: reading and checking a large one takes tens of milliseconds. */
const mostKept = 32;

/**
 * Current manifests, read again only when the file has changed. A commit replaces the whole file, so its inode, time
 * and size show that.
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
    // shortened ids may share a path; the archive decides whose manifest it is
    const own = kept?.manifest.instanceId === instanceId && kept.manifest.runId === runId;
    if (kept?.mark === mark && own) return kept.manifest;
    const manifest = await this.#archive.manifest(run);
    this.#kept.delete(file);
    // after a commit in between, the old file's mark would be stored with the new manifest
    if (manifest !== null && (await this.#markOf(file)) === mark) this.#kept.set(file, { mark, manifest });
    return manifest;
  }
  async #markOf(file: string): Promise<string | null> {
    const { layout, store } = this.#archive;
    return (await store.head(layout.keyOf(file)))?.token ?? null;
  }
}
