import type { TableName } from "./profile/table.ts";
import type { RunRef } from "./source.ts";

/** A Parquet file of a run's table. It never changes: a replacement has another name. */
export interface ListedFile {
  readonly table: TableName;
  readonly instance: string;
  readonly run: string;
  /** Unique within the run forever: a part of it comes from the file's hash. */
  readonly name: string;
  /** The commit that made the file; unchanged parts of a run keep their files across commits. */
  readonly generation: number;
  /** The part of the run in the file: all, or a year, month, day or hour. */
  readonly bucket: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  /** Times of the first and the last row, in UNIX nanoseconds. */
  readonly minTsEvent: string;
  readonly maxTsEvent: string;
  /** The table's state: COMPLETE, OPEN or, if allowed, the state after its latest attempt. */
  readonly state: string;
}

/** A table of a run whose files are not listed, although it may have rows. */
export interface WithheldFiles {
  readonly table: TableName;
  readonly instance: string;
  readonly run: string;
  /** Null if the run was archived without the table. */
  readonly state: string | null;
}

export interface FileList {
  /** Ordered by table, instance, run and time. */
  readonly files: readonly ListedFile[];
  readonly withheld: readonly WithheldFiles[];
}

/** Totals of a table over all runs. */
export interface TableFiles {
  readonly table: TableName;
  readonly runs: number;
  readonly files: number;
  readonly rows: number;
  readonly bytes: number;
}

export interface FilesAsked {
  /** Only this table's files. */
  readonly table?: TableName | undefined;
  readonly instanceId?: string | undefined;
  /** Only together with `instanceId`. */
  readonly runId?: string | undefined;
  /** Whether an instance's files may be listed. */
  readonly mayAsk: (instanceId: string) => boolean;
}

/** A file that was checked against its commit, open for reading. */
export interface OpenFile extends AsyncDisposable {
  readonly bytes: number;
  readonly sha256: string;
  /** The bytes from `from` to `to`, exclusive. Throws `archive_damaged` if the file ends earlier. */
  read(from: number, to: number): AsyncGenerator<Uint8Array>;
}

/** Proven rows as Parquet files. */
export interface FileSource {
  /**
   * The files of one committed state of each run. For a named run, throws like a request for its rows; throws
   * `archive_damaged` if the list would be incomplete.
   */
  list(asked: FilesAsked): Promise<FileList>;
  /** Totals of the tables that have any files. Throws `archive_damaged` like a list. */
  sums(asked: Pick<FilesAsked, "mayAsk">): Promise<readonly TableFiles[]>;
  /**
   * Opens a file that a list named within the last hour, or still names. Throws `gone` if it was replaced earlier,
   * otherwise like a request for its table's rows; and `archive_damaged`.
   */
  open(run: RunRef, table: TableName, name: string): Promise<OpenFile>;
}
