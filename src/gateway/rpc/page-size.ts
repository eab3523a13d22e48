/** Rows of a table's first page: few enough for rows of several kilobytes. */
const firstRows = 1000;
/** Most rows of a page, however short: as lines, empty rows take a hundred times the space. */
const mostRows = 100_000;
/** Share of the limit that a page aims for, because rows differ in length. */
const fill = 0.85;
/** A page has at most so many times the rows of the previous one. */
const growth = 4;

/** After a page that was too slow, the maximum grows by this share with each page that comes. */
const recovery = 1 / 32;
/** Relative difference below which sizes count as equal. */
const tolerance = 1 / 4;

/**
 * How many rows to request, so that a page comes close to its byte limit without exceeding it. Learns from the rows
 * received, halves after a page that was too large or slow, and stays below a size that the gateway refuses.
 */
export class PageSize {
  readonly #pageBytes: number;
  readonly #mostRows: number;
  #rows: number;
  /** Most rows known to come in time. */
  #timely: number;
  /** Most rows of an accepted request, and fewest of a refused one. */
  #taken = 0;
  #refused = Number.POSITIVE_INFINITY;

  /** `largest` is the most rows that a gateway is known to accept. */
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

  /** Learns that a page of so many rows, requested with `asked`, had so many bytes. */
  learn(asked: number, rows: number, bytes: number): void {
    this.#taken = Math.max(this.#taken, asked);
    if (rows === 0) return;
    this.#timely = Math.min(this.#mostRows, this.#timely + Math.ceil(this.#timely * recovery));
    const fitting = Math.max(1, Math.floor((this.#pageBytes * fill * rows) / bytes));
    // a last or short page shows how long rows are, but nothing about larger pages
    const grown = Math.max(this.#rows, asked * growth);
    this.#rows = Math.min(fitting, this.#timely, this.#mostTaken(), grown);
  }

  /** Requests half as many; false if it was one row. */
  halve(asked: number): boolean {
    if (asked <= 1) return false;
    this.#rows = Math.floor(asked / 2);
    return true;
  }

  /** Requests half of what did not come in time, and grows slowly afterwards. */
  slowDown(asked: number): void {
    if (!this.halve(asked)) return;
    this.#timely = this.#rows;
  }

  /** Returns to the most rows accepted; false if the refusal was for no more than that. */
  goBack(refused: number): boolean {
    if (this.#taken === 0 || refused <= this.#taken) return false;
    this.#rows = this.#taken;
    return true;
  }

  /** Learns that so many rows were refused and fewer then accepted: the number was the reason. */
  refuse(rows: number): void {
    this.#refused = Math.min(this.#refused, rows);
  }

  /** Halfway to the refused number, until that is hardly more. */
  #mostTaken(): number {
    if (this.#refused === Number.POSITIVE_INFINITY) return this.#mostRows;
    // a gateway may accept less than it did before: then only that is known
    const taken = Math.min(this.#taken, this.#refused - 1);
    return this.#refused <= taken * (1 + tolerance) ? taken : Math.floor((taken + this.#refused) / 2);
  }
}
