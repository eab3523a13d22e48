import { durationText } from "../../model/text/duration-text.ts";

const dayMs = 86_400_000;

/** An age or duration in words: from two days on in days. */
export function ageText(ms: number): string {
  const days = Math.floor(ms / dayMs);
  return days < 2 ? durationText(ms) : `${days} days`;
}
