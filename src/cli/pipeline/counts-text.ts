import { grouped } from "../../model/text/number-text.ts";

/** Counts by word: `3 new, 396 unchanged`. */
export function countsText(counts: Readonly<Partial<Record<string, number>>>): string {
  const words = Object.entries(counts).flatMap(([word, count = 0]) =>
    count === 0 ? [] : [`${grouped(count)} ${word.replaceAll("_", " ")}`],
  );
  return words.length === 0 ? "no runs" : words.join(", ");
}
