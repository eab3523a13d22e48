import { visible } from "../../model/text/visible-text.ts";

/** Rows under a header and a rule; columns are as wide as the widest cell given at the start. */
export interface Aligned {
  readonly head: string;
  /** More rows of the same columns; a wider cell shifts the cells after it. */
  lines(cells: readonly (readonly string[])[]): string;
}

/**
 * Columns two spaces apart. Cells may hold any text: see `visible`. `paint` is given each padded cell, and what it adds
 * takes no room on the screen.
 */
export function alignedColumns(
  names: readonly string[],
  cells: readonly (readonly string[])[],
  right: readonly boolean[],
  paint: (cell: string, column: string) => string = (cell) => cell,
): Aligned {
  const header = names.map(visible);
  const rows = cells.map((row) => row.map(visible));
  const widths = header.map((name, index) =>
    rows.reduce((width, row) => Math.max(width, row[index]!.length), name.length),
  );
  const line = (row: readonly string[], painted: typeof paint) => {
    const shown = row.map((cell, index) => {
      // spaces after the last cell would only wrap
      const width = index < row.length - 1 || right[index] ? widths[index]! : 0;
      return painted(right[index] ? cell.padStart(width) : cell.padEnd(width), names[index]!);
    });
    return `${shown.join("  ").trimEnd()}\n`;
  };
  return {
    head:
      line(header, (cell) => cell) +
      line(
        widths.map((width) => "-".repeat(width)),
        (cell) => cell,
      ),
    lines: (more) => more.map((row) => line(row.map(visible), paint)).join(""),
  };
}

/** All of a table's rows, see `alignedColumns`. */
export function alignedTable(
  names: readonly string[],
  cells: readonly (readonly string[])[],
  right: readonly boolean[],
  paint?: (cell: string, column: string) => string,
): string {
  const { head, lines } = alignedColumns(names, cells, right, paint);
  return head + lines(cells);
}
