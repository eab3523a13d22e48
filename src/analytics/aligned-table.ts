import { visible } from "../model/visible-text.ts";

/**
 * Columns padded to their widest cell, two blanks apart, under a header and a rule. Cells may hold any text: see `visible`.
 * `paint` is given each padded cell, and what it adds takes no room on the screen.
 */
export function alignedTable(
  names: readonly string[],
  cells: readonly (readonly string[])[],
  right: readonly boolean[],
  paint: (cell: string, column: string) => string = (cell) => cell,
): string {
  const header = names.map(visible);
  const rows = cells.map((row) => row.map(visible));
  const widths = header.map((name, index) =>
    rows.reduce((width, row) => Math.max(width, row[index]!.length), name.length),
  );
  const line = (row: readonly string[], paintCell = paint) =>
    row
      .map((cell, index) => {
        // blanks behind the last cell would only wrap
        const blanks = index === row.length - 1 && !right[index] ? 0 : widths[index]!;
        const padded = right[index] ? cell.padStart(blanks) : cell.padEnd(blanks);
        return paintCell(padded, names[index]!);
      })
      .join("  ");
  const plain = (text: string) => text;
  const rule = widths.map((width) => "-".repeat(width)).join("  ");
  return `${[line(header, plain), rule, ...rows.map((row) => line(row))].map((text) => text.trimEnd()).join("\n")}\n`;
}
