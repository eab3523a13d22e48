import { alignedTable } from "../analytics/aligned-table.ts";
import type { Painter } from "./painter.ts";

/** A table whose last cells are notes, which are rare: a column of blanks would only be a rule over nothing. */
export function notedTable(
  columns: readonly string[],
  lines: readonly (readonly string[])[],
  right: readonly boolean[],
  paint: Painter,
): string {
  const noted = lines.some((cells) => cells.at(-1) !== "");
  const shown = noted ? lines : lines.map((cells) => cells.slice(0, columns.length));
  return indented(alignedTable(noted ? [...columns, "note"] : columns, shown, [...right, false], paint));
}

function indented(text: string): string {
  return text.replace(/^(?=.)/gm, "  ");
}
