import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

/** Where this user's caches of runvault are. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  const { XDG_CACHE_HOME: given = "" } = env;
  // a relative one is to be ignored, by the rule that it comes from
  return join(isAbsolute(given) ? given : join(homedir(), ".cache"), "runvault");
}
