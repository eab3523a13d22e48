import { visible } from "../model/visible-text.ts";

/** Columns padded to their widest cell, two blanks apart, under a header and a rule. Cells may hold any text: see `visible`. */
export function alignedTable(
  names: readonly string[],
  cells: readonly (readonly string[])[],
  right: readonly boolean[],
): string {
  const header = names.map(visible);
  const rows = cells.map((row) => row.map(visible));
  const widths = header.map((name, index) =>
    rows.reduce((width, row) => Math.max(width, row[index]!.length), name.length),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, index) => (right[index] ? cell.padStart(widths[index]!) : cell.padEnd(widths[index]!)))
      .join("  ")
      .trimEnd();
  return `${[line(header), widths.map((width) => "-".repeat(width)).join("  "), ...rows.map(line)].join("\n")}\n`;
}
