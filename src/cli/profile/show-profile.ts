import { loadProfile } from "../../gateway/profile/load-profile.ts";
import { profileText } from "../../gateway/profile/profile-text.ts";
import { exit } from "../../model/error.ts";
import type { Session } from "../process/session.ts";

/** Prints a whole profile, without its secrets. Throws all that is wrong with its file. */
export async function showProfile(file: string, session: Session): Promise<number> {
  const profile = await loadProfile(file);
  await session.print(session.json ? `${JSON.stringify(profile, null, 2)}\n` : profileText(profile));
  return exit.done;
}
