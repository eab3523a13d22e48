import { RunvaultError } from "../../model/error.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { openWindow } from "../plan/full-scan.ts";
import type { TableAsks } from "../plan/table-asks.ts";
import { requireNone } from "./outer-ends.ts";

/** True for the error with which a source reports a table that a run does not have. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof RunvaultError && error.code === "history_unavailable";
}

/**
 * Whether the table's own route reports that the run has no such table, up to the horizon of a growing run. An answer
 * without rows is not enough. Throws `incomplete` if it returns a row, and what the source throws.
 */
export async function isRefusedByRoute(asks: TableAsks, until: Nanoseconds | undefined): Promise<boolean> {
  try {
    await requireNone(asks, openWindow(until));
    return false;
  } catch (error) {
    if (isUnavailable(error)) return true;
    throw error;
  }
}
