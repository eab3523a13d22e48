import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { Notices } from "../notices.ts";

/** Bounds the memory for a gateway that sends other fields each time. */
const mostRemembered = 10_000;

/** Fields of one message or document that the contract does not know, by key or by `#` and number. */
export interface UnknownSeen {
  /** The message, in words. */
  readonly what: string;
  readonly fields: readonly string[];
  /** Those of them that may hold what is needed. */
  readonly candidates: readonly string[];
  /** A needed field that is empty beside them; undefined if all are filled. */
  readonly empty: string | undefined;
}

/**
 * Judges fields that the contract does not know. If all needed fields are filled, they are reported once, because
 * gateways grow. If a needed field is empty, an unknown one may be the same under another name, and ignoring it would
 * lose a value, unless it was once seen beside a filled one.
 */
export class UnknownFields {
  readonly #notices: Notices;
  readonly #grown = new Set<string>();
  readonly #told = new Set<string>();

  constructor(notices: Notices) {
    this.#notices = notices;
  }

  /** Throws `not_a_gateway`. */
  judge({ what, fields, candidates, empty }: UnknownSeen, place: ErrorPlace): void {
    if (fields.length === 0) return;
    const keyOf = (field: string) => `${what} ${field}`;
    const suspect = candidates.filter((field) => !this.#grown.has(keyOf(field)));
    if (empty !== undefined && suspect.length > 0) {
      throw new RunvaultError(
        "not_a_gateway",
        `${what} has no ${empty}, but fields that the contract does not know: ${shown(suspect)}`,
        {
          place,
          // nothing else is read
          status: 200,
          hint: "The gateway follows another contract: compare its fields with proto/, or ask its operator.",
        },
      );
    }
    if (empty === undefined) for (const field of fields) remember(this.#grown, keyOf(field));
    const news = fields.filter((field) => !this.#told.has(keyOf(field)));
    if (news.length === 0) return;
    for (const field of news) remember(this.#told, keyOf(field));
    this.#notices.tell(
      `${what} has fields that the contract does not know, which are ignored: ${shown(news)}`,
    );
  }
}

function remember(set: Set<string>, key: string): void {
  if (set.size < mostRemembered) set.add(key);
}

/** A name that is shown as it is; any other may be anything, a secret included. */
const plainName = /^#?\w{1,40}$/;

function shown(fields: readonly string[]): string {
  const names = fields.map((field) => (plainName.test(field) ? field : "a field with an odd name"));
  const distinct = [...new Set(names)].sort();
  return distinct.length <= 10 ? distinct.join(", ") : `${distinct.slice(0, 10).join(", ")} and others`;
}
