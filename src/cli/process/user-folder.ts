import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

/** The folder of this user's caches. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  return userFolder(env.XDG_CACHE_HOME, ".cache");
}

/** The folder of data that this user would miss but can do without. */
export function stateFolder(env: NodeJS.ProcessEnv): string {
  return userFolder(env.XDG_STATE_HOME, join(".local", "state"));
}

function userFolder(given = "", usual: string): string {
  // the XDG rules say to ignore relative paths
  return join(isAbsolute(given) ? given : join(homedir(), usual), "runvault");
}
