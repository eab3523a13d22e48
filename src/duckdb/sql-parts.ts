/** Quoted texts, names and comments, in which a semicolon ends nothing, and words; an unclosed part extends to the end. */
const parts =
  /[eE]'[^'\\]*(?:(?:\\.|'')[^'\\]*)*('|$)|'[^']*(?:''[^']*)*('|$)|"[^"]*(?:""[^"]*)*("|$)|--[^\n]*|\/\*.*?(\*\/|$)|\$(\w*)\$.*?(\$\5\$|$)|\w+|./gsy;

/** A part of SQL for finding the end of a statement. */
export interface SqlPart {
  readonly text: string;
  readonly index: number;
  readonly kind: "semicolon" | "comment" | "blank" | "other";
  /** What would close it, if nothing does; null if it is closed. */
  readonly closer: string | null;
}

/** Splits SQL into its parts, in order. */
export function* sqlParts(sql: string): Generator<SqlPart> {
  for (const match of sql.matchAll(parts)) {
    const text = match[0];
    yield { text, index: match.index, kind: kindOf(text), closer: closerOf(match) };
  }
}

function kindOf(text: string): SqlPart["kind"] {
  if (text === ";") return "semicolon";
  if (/^(?:--|\/\*)/.test(text)) return "comment";
  return text.trim() === "" ? "blank" : "other";
}

function closerOf([part, escaped, text, name, comment, tag, tagged]: RegExpMatchArray): string | null {
  if (comment === "") return "*/";
  if (tagged === "") return `$${tag}$`;
  return [escaped, text, name].includes("") ? (part!.startsWith('"') ? '"' : "'") : null;
}
