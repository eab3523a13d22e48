import { lstatSync, mkdirSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { dirname, join } from "node:path";
import { cacheFolder } from "./user-folder.ts";

/**
 * Has Node keep what it compiles, which halves the time to start. In the user's own folder: the one that Node would take
 * is in the temporary folder, where anyone could put code for others to run. Without such a folder nothing is kept.
 */
export function keepCompiled(env: NodeJS.ProcessEnv): void {
  // whoever names a folder to Node has chosen
  if (env.NODE_COMPILE_CACHE !== undefined) return;
  const own = cacheFolder(env);
  const folder = join(own, "compiled");
  try {
    for (const path of [dirname(own), own, folder]) makePrivate(path);
    if (isOwn(own) && isOwn(folder)) enableCompileCache(folder);
  } catch {
    // a home that cannot be written to costs no more than the time
  }
}

function makePrivate(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** Whether it is a folder of this user in which nobody else can write. */
function isOwn(folder: string): boolean {
  const entry = lstatSync(folder);
  return entry.isDirectory() && entry.uid === process.getuid?.() && (entry.mode & 0o022) === 0;
}
