import { RunvaultError } from "../../model/error.ts";

/** The message of damage that a reader of the archive threw; rethrows any other error. */
export function damageOf(error: unknown): string {
  if (error instanceof RunvaultError && error.code === "archive_damaged") return error.message;
  throw error;
}
