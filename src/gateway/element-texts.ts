/** Strings, punctuation and everything else that JSON is made of. */
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s"{}[\],:]+/g;

/**
 * The texts of an array's elements as they stand in the text of a JSON object, whose member the array is; none where
 * there is no such array. Of a member given twice the last counts, as for JSON.parse. The text has to be valid JSON.
 */
export function elementTexts(text: string, member: string): string[] {
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
  for (const { 0: token, index } of text.matchAll(tokens)) {
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
    end = index + token.length;
  }
  return texts;
}
