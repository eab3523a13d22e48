/** Rows of the first page of a table: small enough for any row of a few kilobytes. */
const firstRows = 1000;
/** Most rows of a page, however short they are: as lines, rows of nothing take a hundred times what they take here. */
const mostRows = 100_000;
/** What of the limit a page is sized for: rows differ in length. */
const fill = 0.85;
/** A page has at most so many times the rows of the one before. */
const growth = 4;

/**
 * How many rows to ask for, so that a page comes near its limit in bytes and not beyond: learnt from the rows that came,
 * halved when a page was too large.
 */
export class PageSize {
  readonly #pageBytes: number;
  #rows = firstRows;

  constructor(pageBytes: number) {
    this.#pageBytes = pageBytes;
  }

  /** Rows of the next page. */
  get rows(): number {
    return this.#rows;
  }

  /** Takes in that a page of so many rows, asked for with `asked`, had so many bytes. */
  learn(asked: number, rows: number, bytes: number): void {
    if (rows === 0) return;
    const fitting = Math.max(1, Math.floor((this.#pageBytes * fill * rows) / bytes));
    // a last or a short page tells how long rows are, and nothing about more of them
    this.#rows = Math.min(fitting, mostRows, Math.max(this.#rows, asked * growth));
  }

  /** Asks for half of what was too much; false where that was one row. */
  halve(asked: number): boolean {
    if (asked <= 1) return false;
    this.#rows = Math.floor(asked / 2);
    return true;
  }
}
