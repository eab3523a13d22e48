import { expect, test } from "vitest";
import { asQueryError } from "../../src/analytics/query/query-error.ts";
import type { ErrorCode } from "../../src/model/error.ts";

const file = "/archive/data/a/12/fills.g1.1.parquet";

// messages as DuckDB words them
const messages: [string, string, ErrorCode][] = [
  [
    "a committed file that is torn",
    `Invalid Input Error: No magic bytes found at end of file '${file}'`,
    "archive_damaged",
  ],
  [
    "a committed file that is gone",
    `IO Error: Cannot open file "${file}": No such file or directory`,
    "archive_damaged",
  ],
  ["a page that does not decode", "Invalid Error: ZSTD Decompression failure", "archive_damaged"],
  [
    "a committed file that may not be read",
    `IO Error: Cannot open file "${file}": Permission denied`,
    "storage_forbidden",
  ],
  [
    "a full disk",
    'IO Error: Could not write file "/tmp/q/duckdb_temp_storage-0.tmp": No space left on device',
    "storage_full",
  ],
  [
    "a temporary folder at its limit",
    "Out of Memory Error: failed to offload data block of size 256.0 KiB (1.0 GiB/1.0 GiB used).",
    "storage_full",
  ],
  [
    "a disk that fails",
    'IO Error: Could not read from file "/tmp/q/x": Input/output error',
    "storage_failed",
  ],
  [
    "a query that needs more memory",
    "Out of Memory Error: could not allocate block of size 256.0 KiB",
    "query_invalid",
  ],
  ["a text that the query itself raises", "Invalid Input Error: No space left on device", "query_invalid"],
  [
    "a table that is not there",
    "Catalog Error: Table with name fils does not exist!\nDid you mean",
    "query_invalid",
  ],
];
test.each(messages)("%s", (_, message, code) => {
  expect(asQueryError(new Error(message), [file]).code).toBe(code);
});

test("only damage names its file, and a full disk is not told to move the archive", () => {
  const damage = asQueryError(new Error(`IO Error: Cannot read "${file}": No such file or directory`), [
    file,
  ]);
  expect(damage.place.file).toBe(file);
  const full = asQueryError(new Error("IO Error: x: No space left on device"), [file]);
  expect(full.hint).toContain("TMPDIR");
});
