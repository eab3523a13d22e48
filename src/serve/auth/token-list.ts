import { createHash, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { RunvaultError } from "../../model/error.ts";
import { parseJson } from "../../model/outside-json.ts";

/** The sender of a request. */
export interface Caller {
  /** Of its token; empty if none is required. */
  readonly name: string;
  allows(instanceId: string): boolean;
}

/** Any caller, if no token is required. */
export const anyone: Caller = { name: "", allows: () => true };

/** Means all instances. */
const everyInstance = "*";
/** An unsalted digest is safe for a text that cannot be guessed; shorter ones are passwords. */
const leastTokenLength = 20;
/** The digest of an empty token, from a tool that received nothing. */
const emptyDigest = hex("");

const entrySchema = z.strictObject({
  name: z.string().min(1, "is empty"),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, "is not a SHA-256 in lower-case hex"),
  instances: z.array(z.string().min(1, "is empty")).min(1, "names no instance"),
});
type Entry = z.infer<typeof entrySchema>;

/** The tokens that a server accepts, known only by their digests. */
export class TokenList {
  #entries: readonly { readonly digest: Buffer; readonly caller: Caller }[];

  private constructor(entries: readonly Entry[]) {
    this.#entries = entries.map(({ name, sha256, instances }) => {
      const allowed = new Set(instances);
      const allows = (instanceId: string) => allowed.has(everyInstance) || allowed.has(instanceId);
      return { digest: Buffer.from(sha256, "hex"), caller: { name, allows } };
    });
  }

  /** A single token that may do everything. */
  static single(token: string): TokenList {
    return new TokenList([{ name: "token", sha256: hex(token), instances: [everyInstance] }]);
  }

  /**
   * Parses a tokens file: one JSON object per line, as from `tokenLine`; empty lines and lines that begin with # are
   * skipped. Throws `invalid_argument` with the line.
   */
  static parse(text: string, file: string): TokenList {
    const entries: Entry[] = [];
    const names = new Set<string>();
    const digests = new Set<string>();
    for (const [index, line] of text.split("\n").entries()) {
      if (/^\s*(#|$)/.test(line)) continue;
      const wrong = (why: string) =>
        new RunvaultError("invalid_argument", `the tokens file is not valid: ${why}`, {
          place: { file, line: index + 1 },
          hint: "Create each line with `runvault serve token NAME`, which reads a token from standard input.",
        });
      const value = parsedJson(line);
      if (value === undefined) throw wrong("the line is not JSON");
      const parsed = entrySchema.safeParse(value);
      if (!parsed.success) throw wrong(z.prettifyError(parsed.error));
      const { name, sha256 } = parsed.data;
      if (sha256 === emptyDigest) throw wrong(`the token of ${JSON.stringify(name)} is empty`);
      if (names.has(name)) throw wrong(`the name ${JSON.stringify(name)} appears twice`);
      if (digests.has(sha256)) throw wrong(`${JSON.stringify(name)} has the same token as another name`);
      names.add(name);
      digests.add(sha256);
      entries.push(parsed.data);
    }
    if (entries.length > 0) return new TokenList(entries);
    throw new RunvaultError("invalid_argument", "the tokens file has no tokens", { place: { file } });
  }

  /** Replaces its tokens with another list's. */
  become(other: TokenList): void {
    this.#entries = other.#entries;
  }

  /** The caller of an Authorization header; null if it has no valid token. */
  caller(header: string | null | undefined): Caller | null {
    const given = /^bearer (.+)$/i.exec(header ?? "")?.[1];
    if (given === undefined) return null;
    const digest = createHash("sha256").update(given).digest();
    let found: Caller | null = null;
    // all are compared, so that the time reveals nothing
    for (const entry of this.#entries) if (timingSafeEqual(digest, entry.digest)) found = entry.caller;
    return found;
  }
}

/**
 * A line for a tokens file: the token's name, its digest, and its instances, `*` for all. Throws `invalid_argument` if
 * the token could be guessed, or does not fit a header.
 */
export function tokenLine(token: string, name: string, instances: readonly string[]): string {
  if (token.length < leastTokenLength || !/^[\x21-\x7e]+$/.test(token)) {
    throw new RunvaultError(
      "invalid_argument",
      `a token must be one word of at least ${leastTokenLength} ASCII characters`,
      { hint: "Create one with `openssl rand -hex 32`." },
    );
  }
  const entry: Entry = { name, sha256: hex(token), instances: [...instances] };
  return `${JSON.stringify(entry)}\n`;
}

function hex(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

function parsedJson(line: string): unknown {
  try {
    return parseJson(line);
  } catch {
    // the caller reports it with the line
    return undefined;
  }
}
