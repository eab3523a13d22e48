import { hostname, userInfo } from "node:os";
import { openArchive } from "../../archive/archive.ts";
import { acceptanceJson, acceptanceOf, acceptanceText } from "../../archive/manifest/acceptance.ts";
import { acceptTable } from "../../archive/write/accept-table.ts";
import { exit } from "../../model/error.ts";
import type { TableName } from "../../model/profile/table.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { visible } from "../../model/text/visible-text.ts";
import { wallClock } from "../../model/time.ts";
import { version } from "../../model/version.ts";
import type { Session } from "../process/session.ts";
import { killStep } from "./kill-step.ts";

interface Asked {
  readonly run: RunRef;
  readonly table: TableName;
  /** Null undoes the acceptance. */
  readonly reason: string | null;
}

interface Values {
  readonly archive: string;
  readonly scratch?: string | undefined;
}

/** Accepts a table as it is, or undoes that, and prints the new state. */
export async function acceptAndTell(
  { run, table, reason }: Asked,
  values: Values,
  session: Session,
): Promise<number> {
  const archive = await openArchive(values.archive, { scratch: values.scratch });
  const { manifest, table: now } = await acceptTable({
    ...{ archive, run, table, clock: wallClock, tool: `runvault ${version()}` },
    word: reason === null ? null : { by: whoAmI(), reason },
    step: killStep(session.terminal.env),
  });
  const accepted = acceptanceOf(now);
  if (session.json) {
    const { instanceId, runId, generation } = manifest;
    const told = { instanceId, runId, table, state: now.state, generation, accepted: acceptanceJson(now) };
    await session.print(`${JSON.stringify(told, null, 2)}\n`);
    return exit.done;
  }
  const what =
    accepted === null ? "no longer accepted as it is: the next job fetches it" : acceptanceText(accepted);
  await session.print(`${visible(`${formatRun(manifest)}  ${table}: ${now.state}; ${what}`)}\n`);
  return exit.done;
}

/** The user and the machine. */
function whoAmI(): string {
  let user: string;
  try {
    user = userInfo().username;
  } catch {
    // a container's user may have no name
    user = `user ${process.getuid?.() ?? "unknown"}`;
  }
  return `${user}@${hostname()}`.slice(0, 300);
}
