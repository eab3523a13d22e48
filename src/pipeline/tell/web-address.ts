import { hideParts } from "../../model/text/address-secrets.ts";
import type { Scrubber } from "../../model/text/scrubber.ts";

/** An address that may be a secret as a whole, like a webhook's; only its words are shown. */
export interface WebAddress {
  /** Its description for people: `the webhook`. */
  readonly words: string;
  /** Where to look if it does not work: `the variable ALERT_URL`. */
  readonly from: string;
  readonly url: URL;
}

/** Appends to the path of an address, before its query and without a double slash. */
export function below({ url, ...rest }: WebAddress, part: string): WebAddress {
  const longer = new URL(url);
  longer.pathname = `${url.pathname.replace(/\/+$/, "")}/${part}`;
  return { ...rest, url: longer };
}

/** Hides an address as a whole, and each of its parts that may be a secret. */
export function hideAddress(scrubber: Scrubber, written: string, { url }: WebAddress): void {
  const { href, protocol, pathname, search, username, password, hash } = url;
  // that of a mail server may be any word, such as runvault
  const user = protocol.startsWith("http") ? username : "";
  const secrets = pathname.split("/").filter(isSecretLike);
  const parts = [written, href, search.slice(1), hash.slice(1), user, password, ...secrets];
  parts.push(...url.searchParams.values());
  if (search !== "" || secrets.length > 0) parts.push(pathname + search);
  hideParts(scrubber, parts);
}

/** Words such as `services` and `hooks` occur in other texts as well. */
function isSecretLike(part: string): boolean {
  return part.length >= 16 || (part.length >= 6 && /\d/.test(part));
}
