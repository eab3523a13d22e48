import type { Stats } from "node:fs";

/**
 * Which users beside ourselves may read a file; null where none may. A group may where root owns the file: that is how
 * secrets reach a process which is not root's, in Kubernetes say.
 */
export function otherReaders(stats: Stats): string | null {
  // no permissions in these bits there; a pipe has no other reader anyway
  if (process.platform === "win32" || !stats.isFile()) return null;
  if ((stats.mode & 0o004) !== 0) return "every user";
  const isFromRoot = stats.uid === 0 && process.getuid?.() !== 0;
  return (stats.mode & 0o040) !== 0 && !isFromRoot ? "a group of users" : null;
}
