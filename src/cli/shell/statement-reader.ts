import { sqlParts } from "../../duckdb/sql-parts.ts";
import { mostSqlBytes, type SqlText, sqlTooLong } from "./sql-text.ts";

/** Splits lines into statements that end with a semicolon, without scanning a statement again for each of its lines. */
export class StatementReader {
  readonly #file: string | null;
  /** The scanned part of the statement, which nothing ends. */
  #seen = "";
  /** The unscanned lines after it; they start with an open text or comment, if there is one. */
  #rest = "";
  /** What closes the open part, if no line has brought it yet. */
  #closer: string | null = null;
  #isWithin = false;
  /** Whether the scanned part is only comments and blanks. */
  #isEmpty = true;
  /** The line in which the text begins, and the next line; from 1. */
  #line = 1;
  #next = 1;

  constructor(file: string | null) {
    this.#file = file;
  }

  /**
   * Takes a line without its end. Returns the statements that it ends, without semicolons. Throws `invalid_argument`
   * for one that is too long, and drops it.
   */
  add(line: string): SqlText[] {
    this.#next++;
    if (this.#seen.length + this.#rest.length + line.length >= mostSqlBytes) {
      this.clear();
      throw sqlTooLong(this.#file);
    }
    this.#rest += `${line}\n`;
    this.#isWithin ||= line.trim() !== "";
    if (this.#closer !== null && line.includes(this.#closer)) this.#closer = null;
    // whatever is open, only a semicolon ends a statement
    return this.#closer === null && line.includes(";") ? this.#take() : [];
  }

  /** Skips a line outside of statements. */
  skip(): void {
    this.#next++;
    this.clear();
  }

  /** Whether a statement has begun. */
  get isWithin(): boolean {
    return this.#isWithin;
  }

  /** The unfinished statement. */
  get text(): string {
    return this.#seen + this.#rest;
  }

  /** The last statement, if unterminated; none if there are only comments. */
  end(): SqlText[] {
    const ending = "\n;";
    this.#rest += ending;
    const found = this.#take();
    if (!this.#isWithin) return found;
    // a text or comment is still open: DuckDB reports it
    return [...found, { text: this.text.slice(0, -ending.length), file: this.#file, line: this.#line }];
  }

  /** Drops the unfinished statement. */
  clear(): void {
    this.#seen = "";
    this.#rest = "";
    this.#closer = null;
    this.#isWithin = false;
    this.#isEmpty = true;
    this.#line = this.#next;
  }

  #take(): SqlText[] {
    const found: SqlText[] = [];
    const rest = this.#rest;
    let from = 0;
    let to = rest.length;
    this.#isWithin = this.#seen !== "";
    for (const { index, kind, closer } of sqlParts(rest)) {
      if (kind === "semicolon") {
        const text = this.#seen + rest.slice(from, index);
        const [blank] = /^(?:\s*\n)?/.exec(text)!;
        const ahead = lineEnds(blank);
        if (!this.#isEmpty) {
          found.push({ text: text.slice(blank.length), file: this.#file, line: this.#line + ahead });
        }
        this.#line += lineEnds(text);
        this.#seen = "";
        this.#isEmpty = true;
        this.#isWithin = false;
        from = index + 1;
      } else {
        this.#closer = closer;
        if (closer !== null) to = index;
        else if (kind === "other") this.#isEmpty = false;
        this.#isWithin ||= kind !== "blank";
      }
    }
    if (this.#isWithin) {
      this.#seen += rest.slice(from, to);
      this.#rest = rest.slice(to);
    } else this.clear();
    return found;
  }
}

function lineEnds(text: string): number {
  return text.split("\n").length - 1;
}
