import type { Turns } from "../../model/turns.ts";

/** Matches the tokens of JSON, and of strings only the first quote. */
const tokenForm = /"|[{}[\],:]|[^\s"{}[\],:]+/g;

/**
 * The original texts of an array's elements, where the array is a member of a JSON object; none if there is no such
 * array. The last of duplicate members counts, as for JSON.parse. The text must be valid JSON.
 */
export async function elementTexts(text: string, member: string, turns: Turns): Promise<string[]> {
  // its own object, because other texts are scanned between its turns
  const tokens = new RegExp(tokenForm);
  let texts: string[] = [];
  let depth = 0;
  let key = "";
  let lastToken = "";
  let inside = false;
  let start: number | undefined;
  let end = 0;
  const take = () => {
    if (start !== undefined) texts.push(text.slice(start, end));
    start = undefined;
  };
  for (let match = tokens.exec(text); match !== null; match = tokens.exec(text)) {
    const { index } = match;
    let [token] = match;
    if (token === '"') {
      // a single expression over a long string takes more room than the engine has
      tokens.lastIndex = stringEnd(text, index);
      // only keys are looked at
      token = depth === 1 ? text.slice(index, tokens.lastIndex) : token;
    }
    if (token === "}" || token === "]") depth--;
    if (inside && depth === 1) {
      take();
      inside = false;
    } else if (inside && depth === 2 && token === ",") {
      take();
    } else if (inside) {
      start ??= index;
    } else if (depth === 1 && token === ":") {
      key = JSON.parse(lastToken);
      if (key === member) texts = [];
    } else if (depth === 1 && token === "[" && key === member) {
      inside = true;
    }
    if (token === "{" || token === "[") depth++;
    lastToken = token;
    end = tokens.lastIndex;
    if (turns.isDue(end - index)) await turns.next();
  }
  return texts;
}

/** Where a string ends that begins at `start`. */
function stringEnd(text: string, start: number): number {
  for (let from = start + 1; ; ) {
    const end = text.indexOf('"', from);
    if (end < 0) return text.length;
    let escapes = 0;
    while (text[end - 1 - escapes] === "\\" && end - 1 - escapes >= from) escapes++;
    from = end + 1;
    if (escapes % 2 === 0) return from;
  }
}
