import { basename, join } from "node:path";
import type { Archive } from "../archive/archive.ts";
import { openArchiveFile } from "../archive/archive-file.ts";
import { isMissing } from "../archive/durable.ts";
import { isKept } from "../archive/former-files.ts";
import type { Manifest } from "../archive/manifest.ts";
import { ManifestCache } from "../archive/manifest-cache.ts";
import { generationOf } from "../archive/pending.ts";
import { lstatOrNull } from "../archive/real-folder.ts";
import { servedTable } from "../archive/served-table.ts";
import { type CommittedFile, inData, WholeFiles } from "../archive/whole-files.ts";
import { RunvaultError } from "../model/error.ts";
import type { FileList, FileSource, FilesAsked, ListedFile, OpenFile } from "../model/file-source.ts";
import type { RunRef } from "../model/source.ts";
import { type TableName, tableNames } from "../model/table.ts";
import { type Nanoseconds, wallClock } from "../model/time.ts";
import { instanceNotFound, runNotFound } from "../model/usual-errors.ts";
import { committedParquet } from "./committed-parquet.ts";
import { missingFile } from "./present-files.ts";
import { shortfallOf } from "./shortfall.ts";
import { byTypes, refuseMixedTypes } from "./typed-parquet.ts";

export interface ArchiveFilesOptions {
  /** Gives what the latest attempts brought, proven or not, in place of what is proven. Default false. */
  readonly allowIncomplete?: boolean;
  /** Tells when the hour of a replaced file is over. Default: the machine's. */
  readonly clock?: () => Nanoseconds;
}

/** Digits of a file's hash in its name. */
const hashDigits = 16;
const pieceBytes = 1024 * 1024;

/**
 * The Parquet of an archive for readers elsewhere. A file is found by an entry of its run's manifest, never by what was
 * asked for as a path, and is hashed before its first byte is given, once, as for any reader. Its name has a part of its
 * hash, for a run that is removed and archived again gives its files the names of before.
 */
export class ArchiveFiles implements FileSource {
  readonly #archive: Archive;
  readonly #manifests: ManifestCache;
  readonly #whole: WholeFiles;
  readonly #allowIncomplete: boolean;
  readonly #clock: () => Nanoseconds;
  /** Files that are being hashed, so that the many requests with which a reader begins wait for one hashing. */
  readonly #hashing = new Map<string, Promise<void>>();

  constructor(archive: Archive, { allowIncomplete = false, clock = wallClock }: ArchiveFilesOptions = {}) {
    this.#archive = archive;
    this.#manifests = new ManifestCache(archive);
    this.#whole = new WholeFiles(archive);
    this.#allowIncomplete = allowIncomplete;
    this.#clock = clock;
  }

  async list(asked: FilesAsked): Promise<FileList> {
    const { table, instanceId, runId } = asked;
    const manifests = await this.#manifestsOf(asked);
    if (instanceId !== undefined && manifests.length === 0) throw instanceNotFound(instanceId, "archive");
    if (table !== undefined && runId !== undefined)
      for (const manifest of manifests) servedTable(manifest, table, this.#allowIncomplete);
    const tables = table === undefined ? tableNames : [table];
    const files = tables.flatMap((name) => {
      const committed = committedParquet(this.#archive, manifests, name, this.#allowIncomplete);
      // of all tables the list is what there is, not what is read as one
      if (table !== undefined) refuseMixedTypes(name, byTypes(committed));
      return committed.map(({ file, exactTypes: _, ...rest }): ListedFile => {
        const own = basename(file);
        return {
          table: name,
          ...rest,
          name: nameOf({ file: own, sha256: rest.sha256 }),
          generation: generationOf(own),
        };
      });
    });
    const { withheld } = shortfallOf(manifests, tables, this.#allowIncomplete);
    return { files, withheld: withheld.map(({ rows: _, ...rest }) => rest) };
  }

  async open(run: RunRef, table: TableName, name: string): Promise<OpenFile> {
    const manifest = await this.#manifests.manifest(run);
    if (manifest === null) throw runNotFound(run);
    const file = this.#fileNamed(manifest, table, name);
    try {
      return await this.#openWhole(run, file);
    } catch (error) {
      // a job may have ended the file's hour, or removed the run, in between
      const now = await this.#manifests.manifest(run);
      if (now === null) throw runNotFound(run);
      this.#fileNamed(now, table, name);
      throw error;
    }
  }

  /** Each as it is committed now. */
  async #manifestsOf({ instanceId, runId, mayAsk }: FilesAsked): Promise<Manifest[]> {
    if (instanceId !== undefined && runId !== undefined) {
      const manifest = await this.#manifests.manifest({ instanceId, runId });
      if (manifest === null) throw runNotFound({ instanceId, runId });
      return [manifest];
    }
    const { layout } = this.#archive;
    const folder = instanceId === undefined ? undefined : layout.instanceFolder(instanceId);
    const manifests: Manifest[] = [];
    for (const file of await this.#archive.manifestFiles()) {
      const own = basename(join(file, ".."));
      const known = layout.idOf(own);
      // before it is read: of an instance that is not the asker's, damage is not told either
      if ((folder !== undefined && own !== folder) || (known !== null && !mayAsk(known))) continue;
      const manifest = await this.#archive.manifestIn(file).catch((cause: unknown) => {
        const error = RunvaultError.from(cause, { place: { file } });
        if (error.code !== "archive_damaged") throw error;
        const whose = known === null ? "" : ` of instance ${JSON.stringify(known)}`;
        throw new RunvaultError(error.code, `a manifest${whose} is damaged: the list would not be whole`, {
          cause,
          place: error.place,
        });
      });
      // a run removed since it was listed is simply not there any more
      if (manifest === null || !mayAsk(manifest.instanceId)) continue;
      if (instanceId === undefined || manifest.instanceId === instanceId) manifests.push(manifest);
    }
    const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
    return manifests.sort((a, b) => order(a.instanceId, b.instanceId) || order(a.runId, b.runId));
  }

  /** What the manifest says of a file, current or still kept. */
  #fileNamed(manifest: Manifest, table: TableName, name: string): CommittedFile {
    const { parquet } = servedTable(manifest, table, this.#allowIncomplete);
    const now = this.#clock();
    const former = (manifest.former ?? []).filter(
      (file) =>
        file.table === table &&
        (file.proven || this.#allowIncomplete) &&
        isKept(file, now) &&
        isParquet(file),
    );
    const found = [...inData(parquet), ...former].find((file) => nameOf(file) === name);
    if (found !== undefined) return found;
    const { instanceId: instance, runId } = manifest;
    const place = { instance, run: runId, table };
    // a generation to come would be that of a run that was removed and archived again
    if (isNameOf(table, name) && generationOf(name) <= manifest.generation) {
      throw new RunvaultError("gone", "the file was replaced and is no longer kept: list the table again", {
        place,
      });
    }
    throw new RunvaultError(
      "resource_not_found",
      `${table} of this run has no such file: list the table again`,
      { place },
    );
  }

  async #openWhole(run: RunRef, file: CommittedFile): Promise<OpenFile> {
    const { layout } = this.#archive;
    const path = join(layout.dataDir(run), file.file);
    const { handle } = await openArchiveFile(layout, path, file.storedBytes).catch((error: unknown) => {
      throw isMissing(error) ? missingFile(path, error) : error;
    });
    try {
      await this.#requireWhole(run, file, path);
      // what was hashed is what is open; its ctime moves with the links that commits make
      const [opened, found] = await Promise.all([handle.stat(), lstatOrNull(path)]);
      if (opened.ino !== found?.ino) {
        throw new RunvaultError("archive_damaged", "the file was exchanged while it was opened", {
          place: { file: path },
        });
      }
    } catch (error) {
      await handle.close();
      throw error;
    }
    return {
      bytes: file.storedBytes,
      sha256: file.sha256,
      async *read(from, to) {
        for (let at = from; at < to; ) {
          // one for each piece: the socket holds them until they are sent
          const piece = Buffer.allocUnsafeSlow(Math.min(pieceBytes, to - at));
          const { bytesRead } = await handle.read(piece, 0, piece.byteLength, at);
          if (bytesRead === 0) {
            throw new RunvaultError("archive_damaged", `the file ends after ${at} bytes`, {
              place: { file: path },
            });
          }
          yield piece.subarray(0, bytesRead);
          at += bytesRead;
        }
      },
      [Symbol.asyncDispose]: () => handle.close(),
    };
  }

  #requireWhole(run: RunRef, file: CommittedFile, path: string): Promise<void> {
    // a run that is removed and archived again has other bytes under the same path
    const key = `${file.sha256} ${path}`;
    const underWay = this.#hashing.get(key);
    if (underWay !== undefined) return underWay;
    const hashing = this.#whole.require(run, [file]).finally(() => this.#hashing.delete(key));
    this.#hashing.set(key, hashing);
    return hashing;
  }
}

function nameOf({ file, sha256 }: Pick<CommittedFile, "file" | "sha256">): string {
  return file.replace(/\.parquet$/, `.${sha256.slice(0, hashDigits)}.parquet`);
}

function isNameOf(table: TableName, name: string): boolean {
  if (!name.startsWith(`${table}.`)) return false;
  return /^\.g\d{1,15}\.\d{6,}\.[0-9a-f]{16}\.parquet$/.test(name.slice(table.length));
}

function isParquet({ folder, file }: CommittedFile): boolean {
  return folder === "data" && file.endsWith(".parquet");
}
