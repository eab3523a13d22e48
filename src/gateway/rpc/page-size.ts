/** Rows of the first page of a table: small enough for any row of a few kilobytes. */
const firstRows = 1000;
/** Most rows of a page, however short they are: as lines, rows of nothing take a hundred times what they take here. */
const mostRows = 100_000;
/** What of the limit a page is sized for: rows differ in length. */
const fill = 0.85;
/** A page has at most so many times the rows of the one before. */
const growth = 4;

/** Where a page was too slow, the most rows of the next ones grow by this part with each that comes. */
const recovery = 1 / 32;
/** Sizes that differ by less than this part are not told apart. */
const tolerance = 1 / 4;

/**
 * How many rows to ask for, so that a page comes near its limit in bytes and not beyond: learnt from the rows that came,
 * halved when a page was too large or too slow, and kept below a size that the gateway refuses.
 */
export class PageSize {
  readonly #pageBytes: number;
  readonly #mostRows: number;
  #rows: number;
  /** Most rows that come in time, as far as is known. */
  #timely: number;
  /** The most rows asked for that a page came for, and the fewest that were refused. */
  #taken = 0;
  #refused = Number.POSITIVE_INFINITY;

  /** `largest` is the most rows that a gateway is known to take. */
  constructor(pageBytes: number, largest = mostRows) {
    this.#pageBytes = pageBytes;
    this.#mostRows = Math.min(mostRows, largest);
    this.#rows = Math.min(firstRows, this.#mostRows);
    this.#timely = this.#mostRows;
  }

  /** Rows of the next page. */
  get rows(): number {
    return this.#rows;
  }

  /** Takes in that a page of so many rows, asked for with `asked`, had so many bytes. */
  learn(asked: number, rows: number, bytes: number): void {
    this.#taken = Math.max(this.#taken, asked);
    if (rows === 0) return;
    this.#timely = Math.min(this.#mostRows, this.#timely + Math.ceil(this.#timely * recovery));
    const fitting = Math.max(1, Math.floor((this.#pageBytes * fill * rows) / bytes));
    // a last or a short page tells how long rows are, and nothing about more of them
    const grown = Math.max(this.#rows, asked * growth);
    this.#rows = Math.min(fitting, this.#timely, this.#mostTaken(), grown);
  }

  /** Asks for half of what was too much; false where that was one row. */
  halve(asked: number): boolean {
    if (asked <= 1) return false;
    this.#rows = Math.floor(asked / 2);
    return true;
  }

  /** Asks for half of what did not come in time, and for little more of the next pages. */
  slowDown(asked: number): void {
    if (!this.halve(asked)) return;
    this.#timely = this.#rows;
  }

  /** Goes back to the most rows that were taken; false where what was refused is no more than that. */
  goBack(refused: number): boolean {
    if (this.#taken === 0 || refused <= this.#taken) return false;
    this.#rows = this.#taken;
    return true;
  }

  /** Takes in that so many rows were refused, where fewer were then taken: it was their number. */
  refuse(rows: number): void {
    this.#refused = Math.min(this.#refused, rows);
  }

  /** Halfway to what was refused, until that is hardly more. */
  #mostTaken(): number {
    if (this.#refused === Number.POSITIVE_INFINITY) return this.#mostRows;
    // a gateway may take less than it took: then less is all that is known
    const taken = Math.min(this.#taken, this.#refused - 1);
    return this.#refused <= taken * (1 + tolerance) ? taken : Math.floor((taken + this.#refused) / 2);
  }
}
