import type { Session } from "../process/session.ts";
import { shortestName } from "./fit-names.ts";

/** A column of a table of runs, with its cells. */
interface Column {
  readonly name: string;
  readonly cells: readonly string[];
}

/**
 * The columns that leave room for shortened names in the terminal: those in the middle go first, from the right, then the
 * last. Says how many are shown, with the option (`wholeBy`) that has all.
 */
export function fitColumns<T extends Column>(
  columns: readonly T[],
  session: Pick<Session, "terminal" | "note">,
  wholeBy = "--wide",
): readonly T[] {
  const { columns: width } = session.terminal;
  if (width === null) return columns;
  const needs = (kept: readonly T[]) =>
    kept.reduce(
      (sum, { name, cells }) =>
        sum + 2 + cells.reduce((widest, cell) => Math.max(widest, cell.length), name.length),
      shortestName,
    );
  const kept = [...columns];
  while (kept.length > 1 && needs(kept) > width) kept.splice(Math.max(1, kept.length - 2), 1);
  if (kept.length < columns.length) {
    session.note(`${kept.length + 1} of ${columns.length + 1} columns are shown; ${wholeBy} shows all`);
  }
  return kept;
}
