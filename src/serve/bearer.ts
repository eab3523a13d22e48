import { createHash, timingSafeEqual } from "node:crypto";

/** Whether an Authorization header carries the token. Compared by digest, so that the time it takes says nothing. */
export function isBearer(header: string | null | undefined, token: string): boolean {
  const given = /^bearer (.+)$/i.exec(header ?? "")?.[1] ?? "";
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}
