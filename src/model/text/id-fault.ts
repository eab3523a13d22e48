import { visible } from "./visible-text.ts";

/** The longest id that is asked for and stored. */
export const longestId = 1024;

/**
 * Why a run's or instance's id cannot be requested, stored and shown, in words; null if it can. Slashes, dots and all
 * letters are fine: folders have their own names.
 */
export function idFault(id: string): string | null {
  if (id.length > longestId) return `is longer than ${longestId} characters`;
  if (/\p{Cc}/u.test(id)) return "contains a control character";
  if (!id.isWellFormed()) return "contains half of a surrogate pair";
  return null;
}

/** An id in messages: a faulty one is quoted, escaped, and shortened. */
export function shownId(id: string): string {
  if (idFault(id) === null) return id;
  const start = id.slice(0, 60);
  return `"${visible(start)}${start.length < id.length ? "…" : ""}"`;
}
