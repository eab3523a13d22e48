import { extname } from "node:path";

/** The name whose ending, without its dot, a file's name has; null if it has none of them. */
export function namedByEnding<T extends string>(
  file: string,
  endings: Readonly<Record<T, string>>,
): T | null {
  const ending = extname(file).slice(1).toLowerCase();
  const meant = ending === "jsonl" ? "ndjson" : ending;
  return (Object.keys(endings) as T[]).find((name) => endings[name] === meant) ?? null;
}
