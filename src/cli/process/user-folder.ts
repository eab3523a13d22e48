import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

/** Where this user's caches of runvault are. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  return userFolder(env.XDG_CACHE_HOME, ".cache");
}

/** Where runvault keeps what this user would miss, but could do without. */
export function stateFolder(env: NodeJS.ProcessEnv): string {
  return userFolder(env.XDG_STATE_HOME, join(".local", "state"));
}

function userFolder(given = "", usual: string): string {
  // a relative one is to be ignored, by the rule that it comes from
  return join(isAbsolute(given) ? given : join(homedir(), usual), "runvault");
}
