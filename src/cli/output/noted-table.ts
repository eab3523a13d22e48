import { alignedTable } from "../../analytics/render/aligned-table.ts";
import { visible } from "../../model/text/visible-text.ts";
import type { ReportForm } from "../options/report-form.ts";
import { wrapLines } from "./wrap-lines.ts";

/** A narrow terminal shows these at least. */
const fewestColumns = 3;

/**
 * An indented table with names in the first cells and notes in the last. Notes are rare and long: without any their
 * column is left out, and if they do not fit the terminal they go below, with their names. The last columns are left out
 * of a table that is too wide.
 */
export function notedTable(
  columns: readonly string[],
  lines: readonly (readonly string[])[],
  right: readonly boolean[],
  { paint, columns: most }: Pick<ReportForm, "paint" | "columns">,
): string {
  const noted = lines.filter((cells) => cells.at(-1) !== "");
  if (noted.length > 0) {
    const whole = indented(alignedTable([...columns, "note"], lines, [...right, false], paint));
    // the rule is as long as the longest line, and has no colours
    if (most === null || whole.split("\n")[1]!.length <= most) return whole;
  }
  const tableOf = (count: number): string => {
    const cells = lines.map((line) => line.slice(0, count));
    const table = indented(alignedTable(columns.slice(0, count), cells, right.slice(0, count), paint));
    const fits = most === null || count === fewestColumns || table.split("\n")[1]!.length <= most;
    if (!fits) return tableOf(count - 1);
    const isWhole = count === columns.length;
    const footer = `  ${count} of ${columns.length} columns are shown; --json shows all\n`;
    return isWhole ? table : table + wrapLines(footer, most);
  };
  const notes = noted.map((line) => `  ${visible(`${line[0]}: ${line.at(-1)}`)}\n`);
  return [tableOf(columns.length), ...notes].join("");
}

function indented(text: string): string {
  return text.replace(/^(?=.)/gm, "  ");
}
