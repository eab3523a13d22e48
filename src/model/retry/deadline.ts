/** The longest timer, 24.8 days: a longer one fires at once. */
export const longestTimerMs = 2_147_483_647;

/** Limits a deadline to the longest timer, which in practice is forever. */
export function timerMs(ms: number): number {
  return Math.min(ms, longestTimerMs);
}
