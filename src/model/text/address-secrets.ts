import { RunvaultError } from "../error.ts";
import type { Scrubber } from "./scrubber.ts";

/**
 * Value of an Authorization header made of the user and password in an address; undefined where it has neither. Throws
 * `invalid_argument`, which names the address by `words` and shows nothing of it.
 */
export function basicAuthorization({ username, password }: URL, words: string): string | undefined {
  if (username === "" && password === "") return undefined;
  let pair: string;
  try {
    pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  } catch {
    // the URIError would carry the text
    throw new RunvaultError(
      "invalid_argument",
      `the user name or password in ${words} has an invalid % escape`,
      { hint: "Write a % that stands for itself as %25." },
    );
  }
  return `Basic ${Buffer.from(pair, "utf8").toString("base64")}`;
}

/** Has a scrubber know these parts of an address, as they are written and as they are meant. */
export function hideParts(scrubber: Scrubber, parts: Iterable<string>): void {
  for (const part of parts) {
    scrubber.add(part);
    scrubber.add(decoded(part));
  }
}

/** A broken escape is as it is written: whoever uses the address refuses it. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
