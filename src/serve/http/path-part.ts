/**
 * An id as a URL path segment that no client or proxy changes: bytes outside `[A-Za-z0-9._-]`, and a leading dot,
 * become `~XX`. In percent-encoding, many of them refuse or decode `/`, treat `..` as a folder, and `*` or `[` as a
 * pattern.
 */
export function pathPart(id: string): string {
  return Buffer.from(id, "utf8")
    .toString("latin1")
    .replace(
      /^\.|[^A-Za-z0-9._-]/g,
      (byte) => `~${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
    );
}

/** The id of such a segment, or of a percent-encoded one. */
export function idOfPart(part: string): string {
  const bytes = Buffer.from(part, "utf8").toString("latin1");
  const plain = bytes.replace(/~([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(plain, "latin1").toString("utf8");
}
