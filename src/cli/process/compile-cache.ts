import { lstatSync, mkdirSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { dirname, join } from "node:path";
import { cacheFolder } from "./user-folder.ts";

/**
 * Has Node cache compiled code, which halves the start time. Uses the user's own folder: Node's default is in the
 * temporary folder, where others could plant code. Without such a folder nothing is cached.
 */
export function keepCompiled(env: NodeJS.ProcessEnv): void {
  // the user has chosen another folder
  if (env.NODE_COMPILE_CACHE !== undefined) return;
  const own = cacheFolder(env);
  const folder = join(own, "compiled");
  try {
    for (const path of [dirname(own), own, folder]) makePrivate(path);
    if (isOwn(own) && isOwn(folder)) enableCompileCache(folder);
  } catch {
    // an unwritable home only costs time
  }
}

function makePrivate(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** Whether it is this user's folder and nobody else can write in it. */
function isOwn(folder: string): boolean {
  const entry = lstatSync(folder);
  return entry.isDirectory() && entry.uid === process.getuid?.() && (entry.mode & 0o022) === 0;
}
