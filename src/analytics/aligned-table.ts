import { visible } from "../model/visible-text.ts";

/** Rows under a header and a rule, in columns as wide as the widest cell of those they were made with. */
export interface Aligned {
  readonly head: string;
  /** More rows of the same columns; a cell that is wider moves what follows it. */
  lines(cells: readonly (readonly string[])[]): string;
}

/** Columns two blanks apart. Cells may hold any text: see `visible`. */
export function alignedColumns(
  names: readonly string[],
  cells: readonly (readonly string[])[],
  right: readonly boolean[],
): Aligned {
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
  return {
    head: `${line(header)}\n${widths.map((width) => "-".repeat(width)).join("  ")}\n`,
    lines: (more) => more.map((row) => `${line(row.map(visible))}\n`).join(""),
  };
}

/** Columns padded to their widest cell, under a header and a rule. */
export function alignedTable(
  names: readonly string[],
  cells: readonly (readonly string[])[],
  right: readonly boolean[],
): string {
  const { head, lines } = alignedColumns(names, cells, right);
  return head + lines(cells);
}
