import dataAccessors from "@duckdb/node-api/lib/vectors/dataAccessors.js";

/**
 * Has DuckDB's client give strings whole, wherever in a value they stand. Its one decoder takes a leading U+FEFF for a
 * byte order mark and drops it, and there is no other way to the strings inside of lists and structs. What is replaced
 * is no part of the client's public interface, so its version is pinned, and a test holds it.
 */
export function keepByteOrderMarks(): void {
  Object.assign(dataAccessors, { textDecoder: wholeText });
}

const wholeText = new TextDecoder("utf-8", { ignoreBOM: true });
