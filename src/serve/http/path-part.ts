/**
 * An id as a part of a URL's path that no client and no proxy changes on its way: bytes outside `[A-Za-z0-9._-]`, and a
 * leading dot, as `~XX`. Percent-encoded, `/` is refused or decoded by many of them, `..` is taken for a folder, and `*`
 * or `[` for a pattern.
 */
export function pathPart(id: string): string {
  return Buffer.from(id, "utf8")
    .toString("latin1")
    .replace(
      /^\.|[^A-Za-z0-9._-]/g,
      (byte) => `~${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
    );
}

/** The id of such a part, or of one that was percent-encoded instead. */
export function idOfPart(part: string): string {
  const bytes = Buffer.from(part, "utf8").toString("latin1");
  const plain = bytes.replace(/~([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(plain, "latin1").toString("utf8");
}
