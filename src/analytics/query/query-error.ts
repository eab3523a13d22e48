import { duckDBError } from "../../duckdb/duckdb-error.ts";
import { RunvaultError } from "../../model/error.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { unclearFault } from "../sql/unclear-fault.ts";
import { viewColumns } from "./view-columns.ts";

/**
 * DuckDB's error as ours, by the kind that starts its message: what the query did wrong, what the archive has, or what
 * the disk has. `files` are the committed ones.
 */
export function asQueryError(error: unknown, files: readonly string[]): RunvaultError {
  if (error instanceof RunvaultError) return error;
  const unclear = unclearFault(error);
  if (unclear !== null) return new RunvaultError("query_invalid", unclear, { cause: error });
  if (error instanceof RangeError) {
    return new RunvaultError("query_invalid", "the query or its answer is nested too deeply", {
      cause: error,
    });
  }
  const told = error instanceof Error ? error.message : String(error);
  // a value that does not fit is quoted in full
  const message = told.length > mostMessage ? `${told.slice(0, mostMessage)} …` : told;
  const kind = /^([A-Za-z ]+?) Error:/.exec(message)?.[1] ?? "";
  const details = { cause: error };
  const file = files.find((path) => told.includes(path));
  if (kind === "IO" || kind === "Out of Memory") {
    const stored = storageError(error, file !== undefined);
    if (stored !== null) return stored;
  }
  if (damagedKinds.has(kind) || (file !== undefined && (kind === "IO" || kind === "Invalid Input"))) {
    return new RunvaultError("archive_damaged", message, {
      ...details,
      ...(file === undefined ? {} : { place: { file } }),
      hint: "Run `runvault verify` to see which files are damaged.",
    });
  }
  switch (kind) {
    case "Catalog":
      return new RunvaultError("query_invalid", message, { ...details, hint: tableHint(message) });
    case "Permission":
      return new RunvaultError("query_invalid", message, {
        ...details,
        hint: "Read only the archive's tables; `SHOW TABLES` lists them.",
      });
    case "Out of Memory":
      return new RunvaultError("query_invalid", message, {
        ...details,
        hint: "Narrow the query, or raise --memory (RUNVAULT_MEMORY).",
      });
    case "INTERNAL":
    case "FATAL":
    case "":
      return RunvaultError.from(error);
    default:
      return new RunvaultError("query_invalid", message, details);
  }
}

/** An error of a statement that ran after a line of ours, with the statement's own line numbers. */
export function inOwnLines(error: RunvaultError): RunvaultError {
  const message = error.message.replace(/^LINE (\d+):/m, (_, line) => `LINE ${Number(line) - 1}:`);
  if (message === error.message) return error;
  const { code, place, hint, cause } = error;
  return new RunvaultError(code, message, { place, cause, ...(hint === undefined ? {} : { hint }) });
}

const mostMessage = 2_000;

const damagedKinds: ReadonlySet<string> = new Set(["Invalid", "Serialization"]);

/**
 * A disk error, as opposed to damage of the archive; null if it is neither. An unreadable committed file is damage,
 * unless the disk or its permissions are the reason.
 */
function storageError(error: unknown, namesFile: boolean): RunvaultError | null {
  const { code, message, cause } = duckDBError(error, "the query failed");
  switch (code) {
    case "storage_full":
      return new RunvaultError(code, message, {
        cause,
        hint: "Point TMPDIR at a larger disk, as large results spill to the temporary folder, or narrow the query.",
      });
    case "storage_read_only":
    case "storage_forbidden":
      return new RunvaultError(code, message, { cause });
    case "storage_failed":
      return namesFile ? null : new RunvaultError(code, message, { cause });
    default:
      return null;
  }
}

function tableHint(message: string): string {
  const viewNames = [...viewColumns.keys()];
  const name = /Table with name (\S+) does not exist/.exec(message)?.[1];
  const near = name === undefined ? null : nearestName(name, viewNames);
  return `${near === null ? "" : `Did you mean ${near}? `}The tables are ${viewNames.join(", ")}.`;
}
