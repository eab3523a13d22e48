import { DuckDBDecimalValue, type DuckDBValue } from "@duckdb/node-api";
import { visible, visibleLines } from "../../model/text/visible-text.ts";
import { type QueryResult, rowsOf } from "../query/query.ts";
import { alignedColumns } from "./aligned-table.ts";
import { textCell } from "./cell.ts";

/** How much of a result is shown to people; other formats always give all. */
export interface ShownOptions {
  /** Rows that are shown; all unless given. */
  readonly mostRows?: number | undefined;
  /** Characters of a line, to which a table is cut; any number unless given. */
  readonly width?: number | undefined;
  /** Called with a note for people about what is not shown. */
  readonly onCut?: ((note: string) => void) | undefined;
}

type Row = readonly DuckDBValue[];

/** Rows that decide the widths of columns, so that a table of any length needs the same memory. */
const widthRows = 1_000;

/** How long rows that are not shown are counted, in milliseconds. */
const countingMs = 2_000;

/** Characters of a cell even in a very narrow terminal. */
const leastCell = 16;

/** Aligned text: numbers to the right, NULL as such, control characters escaped. */
export async function* renderTable(result: QueryResult, options: ShownOptions): AsyncGenerator<string> {
  const source = shownRows(result, options);
  try {
    const first: Row[] = [];
    while (first.length < widthRows) {
      const { done, value } = await source.next();
      if (done) break;
      first.push(...value);
    }
    const { head, lines } = isExplain(result) ? explained : tableOf(result, first, options);
    yield head + lines(first);
    for await (const rows of source) yield lines(rows);
  } finally {
    await source.return(undefined);
  }
}

/** One line per value, one record per row; escaped as in a table. */
export async function* renderVertical(result: QueryResult, options: ShownOptions): AsyncGenerator<string> {
  const names = result.columns.map(({ name }) => visible(name));
  const width = Math.max(0, ...names.map((name) => name.length));
  let record = 0;
  const text = (row: Row) => {
    record++;
    const lines = row.map((value, index) =>
      `${names[index]!.padEnd(width)} | ${visible(cellText(value))}`.trimEnd(),
    );
    return `${`-[ ${record} ]`.padEnd(width, "-")}-+-\n${lines.join("\n")}\n`;
  };
  if (isExplain(result)) yield* renderTable(result, options);
  else for await (const rows of shownRows(result, options)) yield rows.map(text).join("");
}

interface Shown {
  readonly head: string;
  lines(rows: readonly Row[]): string;
}

/** DuckDB's EXPLAIN returns text with its own lines, in the second column. */
function isExplain({ columns }: QueryResult): boolean {
  return columns.length === 2 && columns[0]?.name === "explain_key";
}

const explained: Shown = {
  head: "",
  lines: (rows) => rows.map((row) => `${visibleLines(textCell(row[1]!))}\n`).join(""),
};

function tableOf(
  result: QueryResult,
  first: readonly Row[],
  { width = Number.POSITIVE_INFINITY, onCut }: ShownOptions,
): Shown {
  const names = result.columns.map(({ name }) => visible(name));
  const mostCell = Math.max(leastCell, Math.floor(width / 2));
  // trailing zeros that all rows have only take up space on a screen; files and programs get all digits
  const isScreen = width < Number.POSITIVE_INFINITY;
  const digits = names.map((_, index) =>
    isScreen ? Math.max(0, ...first.map((row) => digitsOf(row[index]!))) : Number.POSITIVE_INFINITY,
  );
  const cellsOf = (row: Row) =>
    row.map((value, index) => cut(visible(shortened(value, digits[index]!)), mostCell));
  const cells = first.map(cellsOf);
  const places = columnsThatFit(names, cells, width);
  const left = names.length - places.filter((place) => place !== gap).length;
  if (left > 0) {
    onCut?.(
      `${names.length - left} of ${names.length} columns are shown; for all, use the vertical format or a file`,
    );
  }
  const fitted = (row: readonly string[]) => places.map((place) => (place === gap ? "…" : row[place]!));
  const { head, lines } = alignedColumns(
    fitted(names),
    cells.map(fitted),
    places.map((place) => place !== gap && first.every((row) => isNumeric(row[place]!))),
  );
  return { head, lines: (rows) => lines(rows.map((row) => fitted(cellsOf(row)))) };
}

/** In place of omitted columns. */
const gap = -1;

/**
 * The columns that fit into a line, at least the first. Drops middle columns before the last, which is often the one
 * wanted.
 */
function columnsThatFit(
  names: readonly string[],
  cells: readonly (readonly string[])[],
  width: number,
): readonly number[] {
  const widths = names.map((name, index) =>
    cells.reduce((widest, row) => Math.max(widest, row[index]!.length), name.length),
  );
  const all = names.map((_, index) => index);
  const needs = (places: readonly number[]) =>
    places.reduce((sum, place) => sum + 2 + (place === gap ? 1 : widths[place]!), -2);
  if (needs(all) <= width) return all;
  for (let most = names.length - 2; most > 0; most--) {
    const places = [...all.slice(0, most), gap, names.length - 1];
    if (needs(places) <= width) return places;
  }
  return [0];
}

/** How many digits after a decimal's point are significant. */
function digitsOf(value: DuckDBValue): number {
  if (!(value instanceof DuckDBDecimalValue)) return 0;
  return /\.(\d*?)0*$/.exec(value.toString())?.[1]?.length ?? 0;
}

/** A value's text; a decimal without zeros after so many digits. */
function shortened(value: DuckDBValue, digits: number): string {
  const text = cellText(value);
  if (!(value instanceof DuckDBDecimalValue) || value.scale <= digits) return text;
  const zeros = Math.min(value.scale - digits, /0*$/.exec(text)![0].length);
  return text.slice(0, text.length - zeros).replace(/\.$/, "");
}

/** A text, shortened with `…` if it is too long; never within a character. */
function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

function cellText(value: DuckDBValue): string {
  return value === null ? "NULL" : textCell(value);
}

/** NULL does not decide. */
function isNumeric(value: DuckDBValue): boolean {
  return (
    value === null ||
    typeof value === "number" ||
    typeof value === "bigint" ||
    value instanceof DuckDBDecimalValue
  );
}

/** The rows that are shown; the others are counted, for a while. */
async function* shownRows(
  result: QueryResult,
  { mostRows = Number.POSITIVE_INFINITY, onCut }: ShownOptions,
): AsyncGenerator<readonly Row[], void> {
  let shown = 0;
  let until: number | undefined;
  const tellCut = (more: string) => {
    if (result.rows === shown) return;
    const [some, all] = [shown, result.rows].map((count) => count.toLocaleString("en-US"));
    onCut?.(`${some} of ${more}${all} rows are shown; for all, use the csv format or a file`);
  };
  for await (const chunk of result.chunks()) {
    if (shown < mostRows) {
      const rows = rowsOf(chunk, result.columns.length).slice(0, mostRows - shown);
      shown += rows.length;
      yield rows;
    }
    if (shown < mostRows) continue;
    until ??= performance.now() + countingMs;
    if (performance.now() > until) return tellCut("more than ");
  }
  tellCut("");
}
