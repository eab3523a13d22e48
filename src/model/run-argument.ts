import { RunvaultError } from "./error.ts";
import type { RunRef } from "./source.ts";
import { idFault, shownId } from "./text/id-fault.ts";

/** How a run is named on the command line, for `--help`. */
export const runArgumentHelp =
  "INSTANCE/RUN, or INSTANCE/latest for the run that began last; in INSTANCE write / as %2F and % as %25";

/** The word for an instance's run that began last. */
export const latestRun = "latest";

/** Whether that word names the run; it is never sent to a gateway. */
export function isLatest(named: { readonly instanceId: string; readonly runId?: string }): boolean {
  return named.runId === latestRun;
}

/** Says which run INSTANCE/latest is. */
export function latestText(run: RunRef): string {
  return `${formatRun({ instanceId: run.instanceId, runId: latestRun })} is ${formatRun(run)}`;
}

/**
 * Reads INSTANCE/RUN. Throws `invalid_argument` when a part is empty or the run is the word `current`: a run is
 * always named by its exact id.
 */
export function parseRun(text: string): RunRef {
  const slash = text.indexOf("/");
  const instanceId = slash <= 0 ? "" : parseInstance(text.slice(0, slash));
  const runId = slash < 0 ? "" : text.slice(slash + 1);
  if (instanceId === "" || runId === "" || runId === "current") {
    const what = runId === "current" ? "`current` is not a run id" : "it does not name a run";
    throw new RunvaultError("invalid_argument", `${JSON.stringify(text)}: ${what}`, {
      hint: "Name a run by its exact id as INSTANCE/RUN; `runvault runs` lists them.",
    });
  }
  return { instanceId, runId };
}

/** Reads INSTANCE/RUN, or INSTANCE for all of its runs. Throws `invalid_argument` as `parseRun` does. */
export function parseRunOrInstance(text: string): RunRef | { readonly instanceId: string } {
  return text.includes("/") ? parseRun(text) : { instanceId: parseInstance(text) };
}

/** Parses INSTANCE: %2F is a slash and %25 a percent sign, everything else is literal. Throws `invalid_argument`. */
export function parseInstance(text: string): string {
  const instanceId = text.replace(/%(2f|25)/gi, (code) => (code === "%25" ? "%" : "/"));
  if (instanceId === "") throw new RunvaultError("invalid_argument", "the instance id is empty");
  return instanceId;
}

const exactIdHint = "Name a run by its exact id as INSTANCE/RUN; `runvault runs --gateway URL` lists them.";

/** Parses the name of a run to fetch: ids that can be requested from a gateway, or INSTANCE/latest. */
export function parseWantedRun(text: string): RunRef {
  const run = parseRun(text);
  if (!isLatest(run)) return askable(run);
  askable({ instanceId: run.instanceId });
  return run;
}

/** Returns the ids if they can be requested from a gateway; otherwise throws `invalid_argument`. */
export function askable<T extends { readonly instanceId: string; readonly runId?: string }>(named: T): T {
  for (const id of [named.instanceId, named.runId ?? ""]) {
    const fault = idFault(id);
    if (fault === null) continue;
    throw new RunvaultError("invalid_argument", `the id ${shownId(id)} ${fault}`, { hint: exactIdHint });
  }
  if (isLatest(named)) {
    throw new RunvaultError("invalid_argument", "`latest` cannot be used here", { hint: exactIdHint });
  }
  return named;
}

/** INSTANCE/RUN in the form that `parseRun` reads. */
export function formatRun({ instanceId, runId }: RunRef): string {
  return `${instanceId.replaceAll("%", "%25").replaceAll("/", "%2F")}/${runId}`;
}
