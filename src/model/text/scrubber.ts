/** Removes secrets from text before it is shown. */
export interface Scrubber {
  /** Registers a secret; values under six characters are too common to search for. */
  add(secret: string): void;
  /** The text without known secrets, user and password of URLs, bearer and web tokens, and values of token parameters. */
  scrub(text: string): string;
}

const shown = "***";

/** A scrubber that only knows the usual forms of secrets. */
export function createScrubber(): Scrubber {
  const secrets = new Set<string>();
  return {
    add: (secret) => {
      if (secret.length < 6) return;
      secrets.add(secret);
      secrets.add(encodeURIComponent(secret));
    },
    scrub: (text) => {
      let clean = text;
      for (const secret of secrets) clean = clean.replaceAll(secret, shown);
      return (
        clean
          // linear in the text's length, because texts may have megabytes
          .replace(/:\/\/[^/\s"'@]+@/g, `://${shown}@`)
          .replace(/\beyJ[A-Za-z0-9_-]{8,500}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?/g, shown)
          .replace(/\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}/gi, `$1 ${shown}`)
          .replace(/\b((?:access_|auth_|api_?)?(?:token|key|secret|password)=)[^&\s"']+/gi, `$1${shown}`)
      );
    },
  };
}
