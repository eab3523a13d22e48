const shownCharacters = 300;
/** How much of the common start is shown before a difference further on. */
const leadCharacters = 100;

/** Two lines for a message, each cut to 300 characters around the first character in which they differ. */
export function shownLines(a: string | null, b: string | null): [string | null, string | null] {
  if (a === null || b === null) return [cut(a, 0), cut(b, 0)];
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at++;
  const longest = Math.max(a.length, b.length);
  const start = longest <= shownCharacters ? 0 : Math.max(0, at - leadCharacters);
  return [cut(a, start), cut(b, start)];
}

function cut(text: string | null, start: number): string | null {
  if (text === null) return null;
  const shown = text.slice(start, start + shownCharacters);
  return `${start > 0 ? "…" : ""}${shown}${start + shown.length < text.length ? "…" : ""}`;
}
