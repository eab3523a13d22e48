import { checkProfile } from "../../gateway/profile/check/check-profile.ts";
import { allFindings } from "../../gateway/profile/check/profile-check.ts";
import { exit, RunvaultError } from "../../model/error.ts";
import { isLatest, parseWantedRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { wallClock } from "../../model/time.ts";
import { latestAtSource } from "../list/latest-run.ts";
import type { GatewayValues } from "../options/gateway-options.ts";
import { gatewaySettings, openGatewayFor, retryPolicyFor } from "../options/gateway-options.ts";
import type { Session } from "../process/session.ts";
import { profileCheckJson } from "./profile-check-json.ts";
import { profileCheckText } from "./profile-check-text.ts";

/**
 * Checks a profile against its gateway and prints the findings. Throws everything that is wrong with the profile's
 * file.
 */
export async function checkAndTell(
  run: string | undefined,
  values: GatewayValues,
  session: Session,
): Promise<number> {
  if (values.profile === undefined) {
    throw new RunvaultError("invalid_argument", "no profile given", {
      hint: "Give --profile FILE, or set RUNVAULT_PROFILE.",
    });
  }
  const wanted = run === undefined ? undefined : await wantedRun(run, values, session);
  const gateway = await gatewaySettings(values, retryPolicyFor(values, session), session);
  const check = await checkProfile({
    gateway,
    profile: gateway.profile!,
    run: wanted,
    signal: session.signal,
  });
  const { columns } = session.terminal;
  await session.print(
    session.json
      ? profileCheckJson(check)
      : profileCheckText(check, { paint: session.paint, columns, quiet: session.globals.quiet }),
  );
  return allFindings(check).length === 0 ? exit.done : exit.incomplete;
}

/** The named run; INSTANCE/latest by the lists of the profile. */
async function wantedRun(text: string, values: GatewayValues, session: Session): Promise<RunRef> {
  const named = parseWantedRun(text);
  if (!isLatest(named)) return named;
  await using gateway = await openGatewayFor(values, session);
  const found = await latestAtSource({ kind: "runs", runs: [named] }, gateway, wallClock, session);
  return found.kind === "runs" ? found.runs[0]! : named;
}
