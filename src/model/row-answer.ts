/** Row formats; the value is their media type. A gateway only has the first. */
export const rowForms = {
  ndjson: "application/x-ndjson",
  "arrow-stream": "application/vnd.apache.arrow.stream",
  csv: "text/csv; charset=utf-8; header=present",
} as const;
export type RowForm = keyof typeof rowForms;

/** What a reader of rows accepts. */
export interface AcceptedRows {
  /** Best first; `ndjson` is always among them. */
  readonly forms: readonly RowForm[];
  /** Whether the answer may come as one zstd frame. */
  readonly zstd: boolean;
}

/** Rows of one answer in the format and coding that suit source and reader best. */
export interface RowAnswer {
  readonly form: RowForm;
  /** The forms the source has for these rows. */
  readonly forms: readonly RowForm[];
  /** `zstd`: the chunks are one stored frame. */
  readonly coding: "identity" | "zstd";
  /** Number of rows, once the first chunk has come; undefined if only reading them all can tell. */
  readonly rows: () => number | undefined;
  /** Bytes of NDJSON before compression, if known in advance; undefined for other formats. */
  readonly bytes: number | undefined;
  /** Rows of the whole table that were set aside; 0 for none. */
  readonly setAside: number;
  /** Ends and throws as `HistorySource.rows` does. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /**
   * Rows in the chunks returned so far; formats other than `ndjson` may be a few thousand ahead. Undefined if the
   * source does not count.
   */
  readonly given: (() => number) | undefined;
}
