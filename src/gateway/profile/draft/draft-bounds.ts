/** Most requests of a draft, not counting retries: with more, guessing paths would become scanning. */
export const mostRequests = 60;

/** Numbers of rows to request at once, each tried if the gateway refuses the one before. */
export const rowLimits: readonly number[] = [50, 10, 5];

/** Most runs whose rows are requested, until each table has some. */
export const mostRuns = 3;

/** Whether an answer with this status may refuse a limit that is too large. */
export function refusesLimit(status: number | undefined): boolean {
  return status === 400 || status === 413 || status === 422;
}

/** What would improve a draft; undefined if nothing. `isDescribed`: the gateway's own document was given. */
export function sampleWarning(runs: number, seen: number, isDescribed: boolean): string | undefined {
  if (runs === 0)
    return "the gateway's lists lead to no run, so no rows were seen: name a run that has rows as INSTANCE/RUN";
  if (seen > 0) return undefined;
  return isDescribed
    ? "no request returned rows: name a run that has rows as INSTANCE/RUN"
    : "no usual path returned rows: give the gateway's OpenAPI document with --openapi, or name a run that has rows as INSTANCE/RUN";
}
