import { join } from "node:path";
import { ExportFile } from "../analytics/export/export-file.ts";
import { Disposables } from "../model/disposables.ts";
import type { Report } from "./report-runs.ts";

export interface ReportTarget {
  readonly out: string;
  /** The folder of the charts' specs; null for none. */
  readonly specs: string | null;
  /** Replaces existing files. */
  readonly force: boolean;
  /** A folder in which no file may be: the archive's. */
  readonly outside: string;
}

/** A file that was written. */
export interface WrittenFile {
  readonly file: string;
  readonly bytes: number;
}

export interface WrittenReport {
  readonly page: WrittenFile;
  readonly specs: readonly WrittenFile[];
}

/** The files of a report: opened before it is computed, so that errors show at once. */
export class ReportFiles implements AsyncDisposable {
  readonly #target: ReportTarget;
  readonly #files = new Disposables();
  readonly #page: ExportFile;

  private constructor(target: ReportTarget, page: ExportFile) {
    this.#target = target;
    this.#page = this.#files.use(page);
  }

  /** Throws `invalid_argument` if the page already exists and `force` is not set, and for an impossible path. */
  static async open(target: ReportTarget): Promise<ReportFiles> {
    return new ReportFiles(target, await ExportFile.create(target.out, target));
  }

  /** Writes the page and the specs, `ID.vl.json` per chart. None is moved to its final name before all are written. */
  async write({ html, charts }: Report): Promise<WrittenReport> {
    const { specs, force, outside } = this.#target;
    const files = [{ file: this.#page, text: html }];
    for (const { id, spec } of specs === null ? [] : charts) {
      const file = this.#files.use(
        await ExportFile.create(join(specs ?? "", `${id}.vl.json`), { force, outside, option: "--specs" }),
      );
      files.push({ file, text: `${JSON.stringify(spec, null, 1)}\n` });
    }
    const written: WrittenFile[] = [];
    for (const { file, text } of files) {
      await file.write(piece(text));
      written.push({ file: file.file, bytes: await file.sync() });
    }
    for (const { file } of files) await file.putInPlace();
    const [page, ...rest] = written;
    return { page: page!, specs: rest };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#files[Symbol.asyncDispose]();
  }
}

async function* piece(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}
