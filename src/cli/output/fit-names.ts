import { visible } from "../../model/text/visible-text.ts";
import type { Session } from "../process/session.ts";
import { cutMiddle } from "./fit-line.ts";

/** Names are never cut shorter than this. */
export const shortestName = 12;

/**
 * Fits a table to the terminal by cutting the middle of long names. Prints how many are cut, and that `wholeBy` shows
 * them whole. Files and pipes get full names.
 */
export function fitNames(
  names: readonly string[],
  tableWith: (names: readonly string[]) => string,
  session: Pick<Session, "terminal" | "note">,
  wholeBy = "--wide",
): string {
  const whole = tableWith(names);
  const { columns } = session.terminal;
  // the rule is as wide as the table, and has no colours
  const over = columns === null ? 0 : whole.split("\n", 2)[1]!.length - columns;
  if (over <= 0) return whole;
  const shown = names.map(visible);
  const longest = shown.reduce((most, name) => Math.max(most, name.length), 0);
  const cut = shown.map((name) => cutMiddle(name, Math.max(shortestName, longest - over)));
  const count = cut.filter((name, index) => name !== shown[index]).length;
  if (count > 0)
    session.note(`${count} of ${shown.length} names are shortened to fit; ${wholeBy} shows them in full`);
  return tableWith(cut);
}
