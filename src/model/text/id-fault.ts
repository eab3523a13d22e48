import { visible } from "./visible-text.ts";

/** The longest id that is asked for and stored. */
export const longestId = 1024;

/**
 * What keeps an id of a run or an instance from being asked for, stored and shown, in words; null where nothing does.
 * Slashes, dots and all letters are no fault: folders have names of their own.
 */
export function idFault(id: string): string | null {
  if (id.length > longestId) return `is longer than ${longestId} characters`;
  if (/\p{Cc}/u.test(id)) return "contains a control character";
  if (!id.isWellFormed()) return "contains half of a surrogate pair";
  return null;
}

/** An id as messages show it: a faulty one in quotes, escaped, and cut where it is long. */
export function shownId(id: string): string {
  if (idFault(id) === null) return id;
  const start = id.slice(0, 60);
  return `"${visible(start)}${start.length < id.length ? "…" : ""}"`;
}
