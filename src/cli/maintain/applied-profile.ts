import type { AppliedProfile } from "../../extract/rebuild/rebuild-by-profile.ts";
import { RunvaultError } from "../../model/error.ts";
import { tableNames } from "../../model/profile/table.ts";

/** Reads a profile's file for rebuilding archived rows. Throws every error in the file at once. */
export async function appliedProfile(file: string): Promise<AppliedProfile> {
  if (file === "default") {
    throw new RunvaultError("invalid_argument", "archived rows cannot be rebuilt with the profile default", {
      hint: "The contract's own rows need no map: remove the run with `runvault rm` and fetch it again without a profile.",
    });
  }
  const { loadProfile } = await import("../../gateway/profile/load-profile.ts");
  const { name, described, maps, rest } = await loadProfile(file);
  const whole = tableNames.filter((table) => {
    const route = rest?.tables[table];
    if (route === undefined) return false;
    const { from, to } = route.parameters;
    return from === undefined || (route.order === "descending" && to === undefined);
  });
  return { name, described, maps, whole };
}
