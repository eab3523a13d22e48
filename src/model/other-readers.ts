import type { Stats } from "node:fs";

/**
 * Which other users may read a file; null if none may. A group may if root owns the file: that is how secrets reach a
 * process that is not root, for example in Kubernetes.
 */
export function otherReaders(stats: Stats): string | null {
  // on Windows these bits mean nothing; a pipe has no other reader anyway
  if (process.platform === "win32" || !stats.isFile()) return null;
  if ((stats.mode & 0o004) !== 0) return "every user";
  const isFromRoot = stats.uid === 0 && process.getuid?.() !== 0;
  return (stats.mode & 0o040) !== 0 && !isFromRoot ? "a group of users" : null;
}
