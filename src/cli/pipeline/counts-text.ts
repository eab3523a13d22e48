import { grouped } from "../../model/text/number-text.ts";
import { visible } from "../../model/text/visible-text.ts";
import type { PlanLine } from "../../pipeline/record/job-record.ts";

/** What is to be done with which runs, and which run INSTANCE/latest of the job file is. */
export function planText({ runs, latest }: Pick<PlanLine, "runs" | "latest">): string {
  return latest === undefined ? countsText(runs) : `${countsText(runs)}; latest is ${visible(latest)}`;
}

/** Counts by word: `3 new, 396 unchanged`. */
export function countsText(counts: Readonly<Partial<Record<string, number>>>): string {
  const words = Object.entries(counts).flatMap(([word, count = 0]) =>
    count === 0 ? [] : [`${grouped(count)} ${word.replaceAll("_", " ")}`],
  );
  return words.length === 0 ? "no runs" : words.join(", ");
}
