import { type ErrorPlace, RunvaultError } from "./error.ts";

/** The error when fewer rows came than the answer announced. */
export function rowsMissing(announced: bigint, came: number, place: ErrorPlace): RunvaultError {
  return new RunvaultError("rows_missing", `the gateway announced ${announced} rows, but sent ${came}`, {
    place,
    hint:
      "Run the same command again; if it happens again, ask the gateway's operator which rows its pages leave out. " +
      "If the total counts more than the requested rows, remove it from the profile's pages.",
  });
}
