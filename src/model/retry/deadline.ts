/** The longest that a timer can wait, 24.8 days: one that is asked to wait longer fires at once. */
export const longestTimerMs = 2_147_483_647;

/** A deadline as a timer can keep it: who allows longer waits for ever, as far as anybody can tell. */
export function timerMs(ms: number): number {
  return Math.min(ms, longestTimerMs);
}
