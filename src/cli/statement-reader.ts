import { mostSqlBytes, type SqlText, sqlTooLong } from "./sql-text.ts";

/** Texts, names and comments begin with these, and in them a semicolon ends nothing; words; anything else. */
const parts = /[eE]'|['"]|--[^\n]*|\/\*|\$\w*\$|\w+|./gsy;

/** Stands for the end of a text that has escapes, which is found by `escaped`; as if any line had it. */
const escapes = "";

/** What follows in a text that has escapes, until its end. */
const escaped = /\\.|''|'|[^'\\]+/gsy;

/** What ends that which a part begins; null where the part is all of it. */
function closerOf(part: string): string | null {
  if (part === "/*") return "*/";
  if (/^[eE]'$/.test(part)) return escapes;
  return /^(?:['"]|\$\w*\$)$/.test(part) ? part : null;
}

/** Statements that end with a semicolon, out of lines as they come. */
export class StatementReader {
  readonly #file: string | null;
  #text = "";
  /** The line in which the text begins, and that which comes next; from 1. */
  #line = 1;
  #next = 1;
  /** How far the text was looked at, what is open there, and whether there was more than comments: no line is looked at twice. */
  #at = 0;
  #open: string | null = null;
  #isEmpty = true;

  constructor(file: string | null) {
    this.#file = file;
  }

  /**
   * Takes a line without its end. Gives the statements that it ends, without their semicolons. Throws `invalid_argument`,
   * and drops what was begun, where that is longer than any statement.
   */
  add(line: string): SqlText[] {
    if (this.#text.length + line.length > mostSqlBytes) {
      this.skip();
      throw sqlTooLong(this.#file);
    }
    this.#text += `${line}\n`;
    this.#next++;
    // whatever is open, nothing but a semicolon ends a statement
    return line.includes(";") && line.includes(this.#open ?? "") ? this.#take() : [];
  }

  /** Passes over a line that is no part of a statement. */
  skip(): void {
    this.#next++;
    this.clear();
  }

  /** Whether a statement has begun. */
  get isWithin(): boolean {
    return this.#open !== null || this.#text.trim() !== "";
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
    this.#at = 0;
    this.#open = null;
    this.#isEmpty = true;
  }

  #take(): SqlText[] {
    const found: SqlText[] = [];
    let from = 0;
    while (this.#at < this.#text.length) {
      if (this.#open !== null) {
        this.#close(this.#open);
        continue;
      }
      const part = this.#part(parts);
      if (part === ";") {
        const text = this.#text.slice(from, this.#at - 1);
        const [blank] = /^(?:\s*\n)?/.exec(text)!;
        const ahead = lineEnds(blank);
        if (!this.#isEmpty) {
          found.push({ text: text.slice(blank.length), file: this.#file, line: this.#line + ahead });
        }
        this.#line += lineEnds(text);
        from = this.#at;
        this.#isEmpty = true;
      } else {
        this.#open = closerOf(part);
        if (part.trim() !== "" && !/^(?:--|\/\*)/.test(part)) this.#isEmpty = false;
      }
    }
    this.#text = this.#text.slice(from);
    this.#at = this.#text.length;
    if (!this.isWithin) this.clear();
    return found;
  }

  /** Passes over what is open, as far as it is there: lines come whole, so nothing that ends it is in two. */
  #close(closer: string): void {
    if (closer === escapes) {
      if (this.#part(escaped) === "'") this.#open = null;
      return;
    }
    const end = this.#text.indexOf(closer, this.#at);
    this.#at = end === -1 ? this.#text.length : end + closer.length;
    if (end !== -1) this.#open = null;
  }

  #part(of: RegExp): string {
    of.lastIndex = this.#at;
    const [part] = of.exec(this.#text)!;
    this.#at += part.length;
    return part;
  }
}

function lineEnds(text: string): number {
  return text.split("\n").length - 1;
}
