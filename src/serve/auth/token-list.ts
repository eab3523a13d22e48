import { createHash, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { RunvaultError } from "../../model/error.ts";
import { parseJson } from "../../model/outside-json.ts";

/** Whoever sends a request. */
export interface Caller {
  /** Of its token; empty where nobody is asked for one. */
  readonly name: string;
  allows(instanceId: string): boolean;
}

/** Where no token is wanted. */
export const anyone: Caller = { name: "", allows: () => true };

/** Stands for all instances. */
const everyInstance = "*";
/** A digest without salt is safe for what nobody can guess; shorter ones are passwords. */
const leastTokenLength = 20;
/** What a tool makes of a token that never reached it; nobody has such a token. */
const emptyDigest = hex("");

const entrySchema = z.strictObject({
  name: z.string().min(1, "is empty"),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, "is not a SHA-256 in lower-case hex"),
  instances: z.array(z.string().min(1, "is empty")).min(1, "names no instance"),
});
type Entry = z.infer<typeof entrySchema>;

/** Tokens that a server takes, known by their digests alone. */
export class TokenList {
  #entries: readonly { readonly digest: Buffer; readonly caller: Caller }[];

  private constructor(entries: readonly Entry[]) {
    this.#entries = entries.map(({ name, sha256, instances }) => {
      const allowed = new Set(instances);
      const allows = (instanceId: string) => allowed.has(everyInstance) || allowed.has(instanceId);
      return { digest: Buffer.from(sha256, "hex"), caller: { name, allows } };
    });
  }

  /** One token that may do everything. */
  static single(token: string): TokenList {
    return new TokenList([{ name: "token", sha256: hex(token), instances: [everyInstance] }]);
  }

  /**
   * Reads a tokens file: a JSON object a line, as `tokenLine` makes them; empty lines and lines that begin with # are
   * left out. Throws `invalid_argument` with the line.
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

  /** Takes the tokens of another list from now on, in place of its own. */
  become(other: TokenList): void {
    this.#entries = other.#entries;
  }

  /** Whose token an Authorization header carries; null where it carries none of them. */
  caller(header: string | null | undefined): Caller | null {
    const given = /^bearer (.+)$/i.exec(header ?? "")?.[1];
    if (given === undefined) return null;
    const digest = createHash("sha256").update(given).digest();
    let found: Caller | null = null;
    // every one is compared, so that the time it takes says nothing
    for (const entry of this.#entries) if (timingSafeEqual(digest, entry.digest)) found = entry.caller;
    return found;
  }
}

/**
 * The line of a tokens file for a token: its name, its digest, and the instances it may ask for, `*` being all. Throws
 * `invalid_argument` where the token could be guessed, or does not fit a header.
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
    // the caller says so, with the line
    return undefined;
  }
}
