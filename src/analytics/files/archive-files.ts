import { basename, join } from "node:path";
import type { Archive } from "../../archive/archive.ts";
import { isKept } from "../../archive/manifest/former-files.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { ManifestCache } from "../../archive/manifest/manifest-cache.ts";
import { servedTable } from "../../archive/manifest/served-table.ts";
import { type CommittedFile, inData, WholeFiles } from "../../archive/read/whole-files.ts";
import { openRegularFile } from "../../archive/storage/archive-file.ts";
import { isMissing } from "../../archive/storage/fsync-files.ts";
import { lstatOrNull } from "../../archive/storage/real-folder.ts";
import { generationOf } from "../../archive/write/run-journal.ts";
import { RunvaultError } from "../../model/error.ts";
import type {
  FileList,
  FileSource,
  FilesAsked,
  ListedFile,
  OpenFile,
  TableFiles,
  WithheldFiles,
} from "../../model/file-source.ts";
import type { ExactTypes } from "../../model/profile/exact-types.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { type Nanoseconds, wallClock } from "../../model/time.ts";
import { instanceNotFound, runNotFound } from "../../model/usual-errors.ts";
import { shortfallOf } from "../shortfall.ts";
import { type CommittedParquet, committedParquet } from "./committed-parquet.ts";
import { missingFile } from "./present-files.ts";
import { refuseMixedTypes } from "./typed-parquet.ts";

export interface ArchiveFilesOptions {
  /** Return the latest attempts' rows, proven or not, instead of the proven ones. Default false. */
  readonly allowIncomplete?: boolean;
  /** For the hour of replaced files. Default: the machine's clock. */
  readonly clock?: () => Nanoseconds;
}

/** Digits of a file's hash in its name. */
const hashDigits = 16;
const pieceBytes = 1024 * 1024;

/**
 * The Parquet of an archive for remote readers. A file is found through its run's manifest, never by a path in the
 * request, and is hashed once before its first byte is returned, as for any reader. Its name contains a part of its
 * hash, because a run that is removed and archived again reuses file names.
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
    const tables = table === undefined ? tableNames : [table];
    const found: { readonly file: ListedFile; readonly exactTypes: ExactTypes }[] = [];
    const withheld: WithheldFiles[] = [];
    let hasRuns = false;
    // only listed parts of each manifest are kept: a thousand large ones would fill the memory
    for await (const manifest of this.#manifestsOf(asked)) {
      hasRuns = true;
      if (table !== undefined && runId !== undefined) servedTable(manifest, table, this.#allowIncomplete);
      for (const name of tables) {
        for (const { file, exactTypes, ...rest } of this.#committed(manifest, name)) {
          const own = basename(file);
          const names = { name: nameOf({ file: own, sha256: rest.sha256 }), generation: generationOf(own) };
          found.push({ file: { table: name, ...rest, ...names }, exactTypes });
        }
      }
      const short = shortfallOf([manifest], tables, this.#allowIncomplete);
      for (const { rows: _, ...rest } of short.withheld) withheld.push(rest);
    }
    if (instanceId !== undefined && !hasRuns) throw instanceNotFound(instanceId, "archive");
    const order = new Map(tables.map((name, index) => [name, index]));
    found.sort(({ file: a }, { file: b }) => order.get(a.table)! - order.get(b.table)! || byRun(a, b));
    // a list of all tables is not read as one relation
    if (table !== undefined) refuseMixedTypes(table, found);
    return { files: found.map(({ file }) => file), withheld: withheld.sort(byRun) };
  }

  async sums(asked: Pick<FilesAsked, "mayAsk">): Promise<readonly TableFiles[]> {
    const sums = tableNames.map((table) => ({ table, runs: 0, files: 0, rows: 0, bytes: 0 }));
    for await (const manifest of this.#manifestsOf(asked)) {
      for (const sum of sums) {
        const committed = this.#committed(manifest, sum.table);
        sum.runs += committed.length === 0 ? 0 : 1;
        sum.files += committed.length;
        for (const { rows, bytes } of committed) {
          sum.rows += rows;
          sum.bytes += bytes;
        }
      }
    }
    return sums.filter(({ files }) => files > 0);
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

  #committed(manifest: Manifest, table: TableName): CommittedParquet[] {
    return committedParquet(this.#archive, [manifest], table, this.#allowIncomplete);
  }

  /** Each as it is committed now, one at a time, in no order that says anything. */
  async *#manifestsOf({ instanceId, runId, mayAsk }: FilesAsked): AsyncGenerator<Manifest> {
    if (instanceId !== undefined && runId !== undefined) {
      const manifest = await this.#manifests.manifest({ instanceId, runId });
      if (manifest === null) throw runNotFound({ instanceId, runId });
      yield manifest;
      return;
    }
    const { layout } = this.#archive;
    const folder = instanceId === undefined ? undefined : layout.instanceFolder(instanceId);
    for (const file of await this.#archive.manifestFiles()) {
      const own = basename(join(file, ".."));
      const known = layout.idOf(own);
      // before reading it: damage in a foreign instance is not reported either
      if ((folder !== undefined && own !== folder) || (known !== null && !mayAsk(known))) continue;
      const manifest = await this.#archive.manifestIn(file).catch((cause: unknown) => {
        const error = RunvaultError.from(cause, { place: { file } });
        if (error.code !== "archive_damaged") throw error;
        const whose = known === null ? "" : ` of instance ${JSON.stringify(known)}`;
        throw new RunvaultError(error.code, `a manifest${whose} is damaged: the list would be incomplete`, {
          cause,
          place: error.place,
        });
      });
      // a run removed since it was listed is simply not there any more
      if (manifest === null || !mayAsk(manifest.instanceId)) continue;
      if (instanceId === undefined || manifest.instanceId === instanceId) yield manifest;
    }
  }

  /** The manifest's entry for a file, current or still kept. */
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
    const { layout, store } = this.#archive;
    const key = layout.committedKey(run, "data", file.file);
    const open = async () => {
      const path = await store.localFile(key);
      return { path, ...(await openRegularFile(path, file.storedBytes)) };
    };
    const { handle, path } = await open().catch((error: unknown) => {
      throw isMissing(error) ? missingFile(store.nameOf(key), error) : error;
    });
    try {
      const opened = await handle.stat();
      await this.#requireWhole(run, file, { path, ino: opened.ino });
      // the hashed file must be the open one; its ctime changes with the links that commits make
      if (opened.ino !== (await lstatOrNull(path))?.ino) {
        throw new RunvaultError("archive_damaged", "the file was replaced while it was being opened", {
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

  #requireWhole(
    run: RunRef,
    file: CommittedFile,
    { path, ino }: { readonly path: string; readonly ino: number },
  ): Promise<void> {
    // a run that is removed and archived again has other bytes under the same path, and its readers must not wait for
    // the old file's hash. The inode cannot be reused meanwhile, because the hashing reader has the old file open
    const key = `${file.sha256} ${ino} ${path}`;
    const underWay = this.#hashing.get(key);
    if (underWay !== undefined) return underWay;
    const hashing = this.#whole.require(run, [file]).finally(() => this.#hashing.delete(key));
    this.#hashing.set(key, hashing);
    return hashing;
  }
}

/** The order of runs in a list. */
function byRun(a: Pick<ListedFile, "instance" | "run">, b: Pick<ListedFile, "instance" | "run">): number {
  const order = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);
  return order(a.instance, b.instance) || order(a.run, b.run);
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
