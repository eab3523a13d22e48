import { RunvaultError } from "../error.ts";
import type { Scrubber } from "./scrubber.ts";

/**
 * Value of an Authorization header for the user and password in an address; undefined without either. Throws
 * `invalid_argument` with `words` for the address, which it does not show.
 */
export function basicAuthorization({ username, password }: URL, words: string): string | undefined {
  if (username === "" && password === "") return undefined;
  let pair: string;
  try {
    pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  } catch {
    // the URIError would contain the text
    throw new RunvaultError(
      "invalid_argument",
      `the user name or password in ${words} has an invalid % escape`,
      { hint: "Write a literal % as %25." },
    );
  }
  return `Basic ${Buffer.from(pair, "utf8").toString("base64")}`;
}

/** Hides these parts of an address, both as written and decoded. */
export function hideParts(scrubber: Scrubber, parts: Iterable<string>): void {
  for (const part of parts) {
    scrubber.add(part);
    scrubber.add(decoded(part));
  }
}

/** A part of an address, decoded; unchanged if an escape is invalid. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
