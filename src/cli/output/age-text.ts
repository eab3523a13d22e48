import { durationText } from "../../model/text/duration-text.ts";

const dayMs = 86_400_000;

/** How long something has been so, or was ago: from two days on in days. */
export function ageText(ms: number): string {
  const days = Math.floor(ms / dayMs);
  return days < 2 ? durationText(ms) : `${days} days`;
}
