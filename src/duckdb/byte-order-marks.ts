import dataAccessors from "@duckdb/node-api/lib/vectors/dataAccessors.js";

/**
 * Makes DuckDB's client return strings unchanged, wherever they are in a value. Its only decoder drops a leading U+FEFF
 * as a byte order mark, and there is no other way to strings inside lists and structs. What is replaced is not public,
 * so the client's version is pinned, and a test covers it.
 */
export function keepByteOrderMarks(): void {
  Object.assign(dataAccessors, { textDecoder: wholeText });
}

const wholeText = new TextDecoder("utf-8", { ignoreBOM: true });
