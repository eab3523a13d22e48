import { homedir } from "node:os";
import { join } from "node:path";

/** Where this user's caches of runvault are. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "runvault");
}
