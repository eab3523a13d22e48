import { RunvaultError } from "../model/error.ts";

/**
 * Turns a DuckDB error into a RunvaultError. DuckDB's Node errors have their class only at the start of the message
 * ("IO Error: …"), so it is read from there.
 */
export function duckDBError(thrown: unknown, doing: string): RunvaultError {
  if (thrown instanceof RunvaultError) return thrown;
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  const firstLine = text.split("\n")[0] ?? text;
  const failed = (code: "storage_full" | "storage_read_only" | "storage_forbidden" | "storage_failed") =>
    new RunvaultError(code, `${doing}: ${firstLine}`, { cause: thrown });
  if (/No space left on device|failed to offload|max_temp_directory_size/i.test(text))
    return failed("storage_full");
  if (/Read-only file system/i.test(text)) return failed("storage_read_only");
  if (/Permission denied/i.test(text)) return failed("storage_forbidden");
  if (text.startsWith("IO Error")) return failed("storage_failed");
  const hint = text.startsWith("Out of Memory Error")
    ? { hint: "Free some memory; query and export have --memory and --threads to set limits." }
    : undefined;
  return new RunvaultError("internal", `${doing}: ${firstLine}`, { cause: thrown, ...hint });
}
