import type { SqlText } from "./sql-text.ts";

/** Texts, names and comments, in which a semicolon ends nothing, and words; one that is not closed goes to the end. */
const parts =
  /[eE]'[^'\\]*(?:(?:\\.|'')[^'\\]*)*('|$)|'[^']*(?:''[^']*)*('|$)|"[^"]*(?:""[^"]*)*("|$)|--[^\n]*|\/\*.*?(\*\/|$)|\$(\w*)\$.*?(\$\5\$|$)|\w+|./gsy;

/** Statements that end with a semicolon, out of lines as they come. */
export class StatementReader {
  readonly #file: string | null;
  #text = "";
  /** The line in which the text begins, and that which comes next; from 1. */
  #line = 1;
  #next = 1;

  constructor(file: string | null) {
    this.#file = file;
  }

  /** Takes a line without its end. Gives the statements that it ends, without their semicolons. */
  add(line: string): SqlText[] {
    this.#text += `${line}\n`;
    this.#next++;
    // whatever is open, nothing but a semicolon ends a statement
    return line.includes(";") ? this.#take() : [];
  }

  /** Passes over a line that is no part of a statement. */
  skip(): void {
    this.#next++;
    this.clear();
  }

  /** Whether a statement has begun. */
  get isWithin(): boolean {
    return this.#text.trim() !== "";
  }

  /** What was begun and not ended. */
  get text(): string {
    return this.#text;
  }

  /** The last statement, which nothing ended; none where there are only comments. */
  end(): SqlText[] {
    const ending = "\n;";
    this.#text += ending;
    const found = this.#take();
    if (!this.isWithin) return found;
    // a text or a comment is open: DuckDB says so
    return [...found, { text: this.#text.slice(0, -ending.length), file: this.#file, line: this.#line }];
  }

  /** Drops what was begun. */
  clear(): void {
    this.#text = "";
    this.#line = this.#next;
  }

  #take(): SqlText[] {
    const found: SqlText[] = [];
    let from = 0;
    let isEmpty = true;
    for (const { 0: part, index } of this.#text.matchAll(parts)) {
      if (part === ";") {
        const text = this.#text.slice(from, index);
        const [blank] = /^(?:\s*\n)?/.exec(text)!;
        const ahead = lineEnds(blank);
        if (!isEmpty) {
          found.push({ text: text.slice(blank.length), file: this.#file, line: this.#line + ahead });
        }
        this.#line += lineEnds(text);
        from = index + 1;
        isEmpty = true;
      } else if (part.trim() !== "" && !/^(?:--|\/\*)/.test(part)) isEmpty = false;
    }
    this.#text = this.#text.slice(from);
    if (!this.isWithin) this.clear();
    return found;
  }
}

function lineEnds(text: string): number {
  return text.split("\n").length - 1;
}
