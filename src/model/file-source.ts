import type { TableName } from "./profile/table.ts";
import type { RunRef } from "./source.ts";

/** A Parquet file of a table of a run. It never changes: what replaces it has another name. */
export interface ListedFile {
  readonly table: TableName;
  readonly instance: string;
  readonly run: string;
  /** By which the run has no other file, ever: part of it comes from the file's hash. */
  readonly name: string;
  /** The commit that made the file; what of a run did not change keeps its files over commits. */
  readonly generation: number;
  /** What the file has of the run: all, or a year, month, day or hour. */
  readonly bucket: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  /** Times of the first and the last row, in UNIX nanoseconds. */
  readonly minTsEvent: string;
  readonly maxTsEvent: string;
  /** What the table is: COMPLETE, OPEN, or, where that is allowed, what its latest attempt made of it. */
  readonly state: string;
}

/** A table of a run of which no files are listed, though rows may be there. */
export interface WithheldFiles {
  readonly table: TableName;
  readonly instance: string;
  readonly run: string;
  /** Null where the run was archived without the table. */
  readonly state: string | null;
}

export interface FileList {
  /** By table, instance, run and time. */
  readonly files: readonly ListedFile[];
  readonly withheld: readonly WithheldFiles[];
}

/** What there is of a table, over all runs. */
export interface TableFiles {
  readonly table: TableName;
  readonly runs: number;
  readonly files: number;
  readonly rows: number;
  readonly bytes: number;
}

export interface FilesAsked {
  /** Of this table alone. */
  readonly table?: TableName | undefined;
  readonly instanceId?: string | undefined;
  /** With `instanceId`. */
  readonly runId?: string | undefined;
  /** Instances that are listed at all. */
  readonly mayAsk: (instanceId: string) => boolean;
}

/** A file that was found to be what was committed, open for reading. */
export interface OpenFile extends AsyncDisposable {
  readonly bytes: number;
  readonly sha256: string;
  /** The bytes from `from` to `to`, excluded. Throws `archive_damaged` where they end before. */
  read(from: number, to: number): AsyncGenerator<Uint8Array>;
}

/** What is proven, as files of Parquet. */
export interface FileSource {
  /**
   * The files of one committed state of each run. Throws, for a run that is named, what asking for its rows does; and
   * `archive_damaged` where the list would not be whole.
   */
  list(asked: FilesAsked): Promise<FileList>;
  /** What lists of the tables have that have files at all. Throws `archive_damaged` as a list does. */
  sums(asked: Pick<FilesAsked, "mayAsk">): Promise<readonly TableFiles[]>;
  /**
   * Opens a file that a list named within the last hour, or that still is what a list names. Throws `gone` where it was
   * replaced longer ago, else what asking for rows of its table does; and `archive_damaged`.
   */
  open(run: RunRef, table: TableName, name: string): Promise<OpenFile>;
}
