/** Columns padded to their widest cell, two blanks apart, under a header and a rule. */
export function alignedTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  right: readonly boolean[],
): string {
  const widths = header.map((name, index) =>
    rows.reduce((width, row) => Math.max(width, row[index]!.length), name.length),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, index) => (right[index] ? cell.padStart(widths[index]!) : cell.padEnd(widths[index]!)))
      .join("  ")
      .trimEnd();
  return `${[line(header), widths.map((width) => "-".repeat(width)).join("  "), ...rows.map(line)].join("\n")}\n`;
}
