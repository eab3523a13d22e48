import { type ErrorPlace, RunvaultError } from "./error.ts";

/** The error when fewer rows came than the answer announced. */
export function rowsMissing(announced: bigint, came: number, place: ErrorPlace): RunvaultError {
  return new RunvaultError("rows_missing", `the gateway announced ${announced} rows, but sent ${came}`, {
    place,
    hint:
      "Run the same command again; if it stays so, ask the gateway's operator which rows its pages leave out. " +
      "If the total counts other rows than those asked for, take it out of the profile's pages.",
  });
}
