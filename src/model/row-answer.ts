/** Forms that rows go out in; the value is their media type. A gateway has the first alone. */
export const rowForms = {
  ndjson: "application/x-ndjson",
  "arrow-stream": "application/vnd.apache.arrow.stream",
  csv: "text/csv; charset=utf-8; header=present",
} as const;
export type RowForm = keyof typeof rowForms;

/** What a reader of rows can take. */
export interface AcceptedRows {
  /** Best first; `ndjson` is always among them. */
  readonly forms: readonly RowForm[];
  /** Whether the answer may come as one zstd frame. */
  readonly zstd: boolean;
}

/** Rows of one answer in the form, and coding, that suits source and reader best. */
export interface RowAnswer {
  readonly form: RowForm;
  /** The forms the source has for these rows. */
  readonly forms: readonly RowForm[];
  /** `zstd`: the chunks are one frame, stored as it is. */
  readonly coding: "identity" | "zstd";
  /** How many rows it will be, once the first chunk has come; undefined where only reading them all can tell. */
  readonly rows: () => number | undefined;
  /** Bytes of NDJSON it will be before compression, where that is known ahead; undefined in other forms. */
  readonly bytes: number | undefined;
  /** Rows of the whole table that were set aside from what the source shows; 0 where none were. */
  readonly setAside: number;
  /** Ends and throws as `HistorySource.rows` does. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /**
   * Rows in the chunks given so far; in other forms than `ndjson` it may be a few thousand ahead of them. Undefined where
   * the source does not count.
   */
  readonly given: (() => number) | undefined;
}
