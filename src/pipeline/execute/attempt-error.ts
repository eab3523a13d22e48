import { attemptHint, attemptReason } from "../../archive/manifest/attempt-text.ts";
import type { TableManifest } from "../../archive/manifest/manifest.ts";
import { type ErrorCode, errorCodes, RunvaultError } from "../../model/error.ts";

/** Why the latest attempt at a table proved nothing, as an error; null if it succeeded. */
export function attemptError(table: TableManifest): RunvaultError | null {
  const { error } = table.attempt;
  const reason = error === null ? attemptReason(table) : error.message;
  if (reason === null) return null;
  // another version of this program may have had other codes
  const code =
    error !== null && Object.hasOwn(errorCodes, error.code) ? (error.code as ErrorCode) : "incomplete";
  const hint = attemptHint(table);
  return new RunvaultError(code, reason, hint === null ? {} : { hint });
}
