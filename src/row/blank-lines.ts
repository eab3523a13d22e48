import { type ErrorPlace, RunvaultError } from "../model/error.ts";
import { countText } from "../model/text/plural.ts";

/** Blank lines that an answer may have, besides one per row: some gateways send them while they search. */
const mostBlankLines = 100_000;
/** A blank line of this many bytes counts as another one. */
const blankLineBytes = 1024;

/** How many blank lines one of so many bytes counts as. */
export function blankLinesIn(bytes: number): number {
  return 1 + Math.floor(bytes / blankLineBytes);
}

/** Throws `malformed_row` if an answer has more blank lines than any gateway needs. */
export function refuseEndlessBlanks(blankLines: number, rows: number, place: ErrorPlace = {}): void {
  if (blankLines <= mostBlankLines + rows) return;
  throw new RunvaultError(
    "malformed_row",
    `an answer has more than ${mostBlankLines} blank lines besides its ${countText(rows, "row")}`,
    {
      place,
      hint: "The gateway, or a proxy in front of it, sends endless blank lines: look at its answers.",
    },
  );
}
