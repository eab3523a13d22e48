import type { Stats } from "node:fs";
import { basename, dirname, join } from "node:path";
import { tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { type Nanoseconds, parseTime } from "../../model/time.ts";
import type { Archive } from "../archive.ts";
import type { Layout } from "../layout.ts";
import type { Manifest } from "../manifest/manifest.ts";
import { asideOwner } from "../storage/fsync-files.ts";
import { ownFiles } from "../storage/own-names.ts";
import { lstatOrNull, requireRealFoldersOf } from "../storage/real-folder.ts";
import { entriesIn } from "../verify/verify-places.ts";
import { linkedParquet } from "../write/commit.ts";
import { readJournal } from "../write/journal.ts";
import { generationOf } from "../write/run-journal.ts";
import { changedAt, type Garbage, type GarbageKind, type KeepReason } from "./garbage.ts";
import { type Readers, readersOf, unnamedFiles } from "./unnamed-files.ts";

/** What decides for all runs alike. */
export interface GarbageRule {
  readonly now: Nanoseconds;
  /** Later changes stay. */
  readonly before: Nanoseconds;
  /** Whether the archive has data but no manifest at all. */
  readonly isLost: boolean;
}

/**
 * A run's garbage, and files that only look like it. Reliable only under the run's lock; otherwise a job may be adding
 * files. Throws `archive_damaged` if the manifest cannot be read, or a folder is not a real one.
 */
export async function garbageOfRun(archive: Archive, run: RunRef, rule: GarbageRule): Promise<Garbage[]> {
  await requireRealFoldersOf(archive.layout, run);
  // first: anything committed later is not among the names seen here, or is young
  const manifest = await archive.manifest(run);
  const look = new RunLook(archive, run, manifest, rule);
  await look.all();
  return look.found;
}

class RunLook {
  readonly found: Garbage[] = [];
  readonly #archive: Archive;
  readonly #layout: Layout;
  readonly #run: RunRef;
  readonly #manifest: Manifest | null;
  readonly #rule: GarbageRule;
  #readers: Readers | undefined;

  constructor(archive: Archive, run: RunRef, manifest: Manifest | null, rule: GarbageRule) {
    this.#archive = archive;
    this.#layout = archive.layout;
    this.#run = run;
    this.#manifest = manifest;
    this.#rule = rule;
  }

  async all(): Promise<void> {
    const isUnfinished = await this.#work();
    if (this.#manifest === null) await this.#committedOfNone(isUnfinished);
    else await this.#committed(this.#manifest, isUnfinished);
    await this.#links();
    await this.#besideManifest();
    // its own lock goes last, if everything else does
    if (this.#manifest === null && this.found.every(({ stays }) => stays === null)) {
      await this.#lock();
    }
  }

  /** Whether there is work that the next job continues. */
  async #work(): Promise<boolean> {
    let isUnfinished = false;
    for (const place of new Set([this.#layout, this.#layout.withoutScratch()])) {
      const pending = await this.#filesIn(place.pendingDir(this.#run), ownFiles.pending);
      const goesOn = pending.length > 0 && (await this.#isTakenUp(place));
      isUnfinished ||= goesOn;
      for (const path of pending) await this.#add(path, "work", goesOn ? "unfinished" : null);
      const staged = await this.#filesIn(place.stagingDir(this.#run), ownFiles.staging);
      for (const path of staged) await this.#add(path, "work");
    }
    return isUnfinished;
  }

  /** Decides like `HeldTables`, except for versions, which only the gateway knows. */
  async #isTakenUp(place: Layout): Promise<boolean> {
    const [head] = (await readJournal(place, this.#run)).entries;
    if (head?.kind !== "open") return false;
    const isOwn = head.instanceId === this.#run.instanceId && head.runId === this.#run.runId;
    return isOwn && head.generation === (this.#manifest?.generation ?? 0) + 1;
  }

  async #committed(manifest: Manifest, isUnfinished: boolean): Promise<void> {
    const { store } = this.#archive;
    for (const file of await unnamedFiles(this.#archive, manifest, manifest.former ?? [])) {
      const { former, name, key } = file;
      // a job killed during its commit continues with the files already moved
      const goesOn = isUnfinished && generationOf(name) > manifest.generation;
      const kind = asideOwner(name) !== null ? "halfWritten" : former === null ? "unnamed" : "replaced";
      const since = former === null ? undefined : parseTime(former.replacedAt);
      await this.#add(store.nameOf(key), kind, goesOn ? "unfinished" : null, since, file.seenUntil);
    }
  }

  async #committedOfNone(isUnfinished: boolean): Promise<void> {
    const { store } = this.#archive;
    const removedAt = await this.#removedAt();
    for (const folder of ["data", "quarantine"] as const) {
      const prefix = this.#layout.committedKey(this.#run, folder);
      for (const name of (await store.names(prefix)).filter(ownFiles[folder])) {
        const kind = asideOwner(name) === null ? "unnamed" : "halfWritten";
        const stays = isUnfinished ? "unfinished" : null;
        await this.#add(store.nameOf(`${prefix}${name}`), kind, stays, undefined, removedAt);
      }
    }
    await this.#add(this.#layout.cacheFile(this.#run), "cache");
  }

  /** When the manifest was removed: not after the last change of its folder, or that folder's removal. */
  async #removedAt(): Promise<Nanoseconds> {
    const { runsDir, dir } = this.#layout;
    for (const folder of [dirname(this.#layout.manifestFile(this.#run)), runsDir, dir]) {
      const found = await lstatOrNull(folder);
      if (found !== null) return nsOf(found);
    }
    return this.#rule.now;
  }

  async #links(): Promise<void> {
    for (const name of tableNames) {
      const isWidening = this.#archive.formerTypes(name) !== undefined;
      const linked = this.#manifest === null ? [] : linkedParquet(this.#manifest, name);
      const wanted = new Set(linked.map(({ bucket }) => `${bucket}.parquet`));
      for (const path of await this.#filesIn(this.#layout.tableDir(name, this.#run), ownFiles.tables)) {
        if (wanted.has(basename(path))) continue;
        const kind = basename(path).startsWith(".") ? "halfWritten" : "links";
        await this.#add(path, kind, isWidening ? "widening" : null);
      }
    }
  }

  /** Leftovers of killed writers of manifests and caches. */
  async #besideManifest(): Promise<void> {
    for (const file of [this.#layout.manifestFile(this.#run), this.#layout.cacheFile(this.#run)]) {
      const isAside = (name: string) => asideOwner(name) === basename(file);
      for (const path of await this.#filesIn(dirname(file), isAside)) await this.#add(path, "halfWritten");
    }
  }

  async #lock(): Promise<void> {
    const file = this.#layout.lockFile(this.#run);
    for (const path of [`${file}.wal`, file]) {
      // taking a lock changes its ctime
      const found = await lstatOrNull(path);
      if (found?.isFile()) await this.#add(path, "locks", null, nsOf(found));
    }
  }

  async #filesIn(folder: string, isOwn: (name: string) => boolean): Promise<string[]> {
    const own = (await entriesIn(folder)).filter((entry) => entry.isFile() && isOwn(entry.name));
    return own.map((entry) => join(folder, entry.name));
  }

  async #add(
    path: string,
    kind: GarbageKind,
    stays: KeepReason | null = null,
    since?: Nanoseconds,
    seenUntil?: Nanoseconds,
  ): Promise<void> {
    const changed = await changedAt(path);
    // gone meanwhile, or foreign
    if (changed === null) return;
    this.found.push({ path, kind, stays: stays ?? (await this.#reason(since ?? changed, seenUntil)) });
  }

  async #reason(since: Nanoseconds, seenUntil: Nanoseconds | undefined): Promise<KeepReason | null> {
    if (this.#rule.isLost) return "noManifests";
    if (since > this.#rule.before) return "young";
    if (seenUntil === undefined) return null;
    // after the manifest, which decides
    this.#readers ??= await readersOf(this.#layout);
    return this.#readers.since(seenUntil) ? "reading" : null;
  }
}

function nsOf({ mtimeMs }: Stats): Nanoseconds {
  return BigInt(Math.ceil(mtimeMs)) * 1_000_000n;
}
