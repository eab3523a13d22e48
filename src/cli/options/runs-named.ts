import { isLatest, parseRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import type { Session } from "../process/session.ts";

/** Archived runs that a command line names. Prints which run each INSTANCE/latest is. */
export async function runsNamed(
  texts: readonly string[],
  folder: string,
  session: Session,
): Promise<readonly RunRef[]> {
  return await withLatest(texts.map(parseRun), folder, session);
}

/** The same for parsed runs, also among whole instances. */
export async function withLatest<T extends RunRef | { readonly instanceId: string }>(
  named: readonly T[],
  folder: string,
  session: Session,
): Promise<readonly (T | RunRef)[]> {
  if (!named.some(isLatest)) return named;
  // so that commands with plain run ids start without it
  const { latestInArchive } = await import("../list/latest-run.ts");
  const found: (T | RunRef)[] = [];
  for (const one of named) {
    found.push(isLatest(one) ? await latestInArchive(one.instanceId, folder, session) : one);
  }
  return found;
}
