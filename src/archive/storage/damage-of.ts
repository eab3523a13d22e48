import { RunvaultError } from "../../model/error.ts";

/** The message of damage that a reader of the archive threw; any other error is thrown on. */
export function damageOf(error: unknown): string {
  if (error instanceof RunvaultError && error.code === "archive_damaged") return error.message;
  throw error;
}
