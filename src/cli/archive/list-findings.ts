import type { ListFinding } from "../../extract/choose/list-finding.ts";
import { exit } from "../../model/error.ts";
import type { Session } from "../process/session.ts";

/** Prints findings about a gateway's lists on standard error. */
export function tellFindings(findings: readonly ListFinding[], session: Session): void {
  for (const { instanceId, text, error } of findings) {
    if (error !== null) session.failure(error);
    else session.note(instanceId === null ? text : `${instanceId}: ${text}`);
  }
}

/** Their exit statuses. */
export function exitsOf(findings: readonly ListFinding[]): number[] {
  return findings.flatMap(({ error }) => (error === null ? [] : [error.exit]));
}

/** A finding in a report. */
export function findingJson({ instanceId, runIds, text, error, count = 1 }: ListFinding) {
  const { code = null, hint = null } = error ?? {};
  return { instanceId, runIds, text, count, code, hint, exit: error?.exit ?? exit.done };
}
