import { type ErrorPlace, RunvaultError } from "../model/error.ts";
import { countText } from "../model/text/plural.ts";

/** Blank lines that an answer may have, beside one for each row: some gateways send them while they look for rows. */
const mostBlankLines = 100_000;
/** A blank line of as many bytes counts as another. */
const blankLineBytes = 1024;

/** How many blank lines one of so many bytes counts as. */
export function blankLinesIn(bytes: number): number {
  return 1 + Math.floor(bytes / blankLineBytes);
}

/** Throws `malformed_row` where an answer has more blank lines than any gateway has a reason for. */
export function refuseEndlessBlanks(blankLines: number, rows: number, place: ErrorPlace = {}): void {
  if (blankLines <= mostBlankLines + rows) return;
  throw new RunvaultError(
    "malformed_row",
    `an answer has more than ${mostBlankLines} blank lines besides its ${countText(rows, "row")}`,
    {
      place,
      hint: "The gateway, or a proxy in front of it, sends blank lines without end: look at what it answers.",
    },
  );
}
