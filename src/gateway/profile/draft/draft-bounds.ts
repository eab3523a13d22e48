/** Most requests of a draft, without retries: more guessed paths would be a scan. */
export const mostRequests = 60;

/** Rows to request at once; if a gateway refuses so many, the next number. */
export const rowLimits: readonly number[] = [50, 10, 5];

/** Most runs whose rows are requested, until each table has shown some. */
export const mostRuns = 3;

/** Whether an answer with this status may refuse a limit that is too large. */
export function refusesLimit(status: number | undefined): boolean {
  return status === 400 || status === 413 || status === 422;
}

/** What the caller could add to a draft; undefined for nothing. `isDescribed`: the gateway's own document was given. */
export function sampleWarning(runs: number, seen: number, isDescribed: boolean): string | undefined {
  if (runs === 0)
    return "no list of the gateway leads to a run, so that no row was seen: name one that has rows as INSTANCE/RUN";
  if (seen > 0) return undefined;
  return isDescribed
    ? "nothing that was asked for gave a row: name a run that has rows as INSTANCE/RUN"
    : "no usual path gave a row: give the gateway's OpenAPI document with --openapi, or name a run that has rows as INSTANCE/RUN";
}
