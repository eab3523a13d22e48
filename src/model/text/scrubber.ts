/** Takes secrets out of text that is about to be shown. */
export interface Scrubber {
  /** Makes a value known as secret; values under six characters are too common to look for. */
  add(secret: string): void;
  /** The text without known secrets, user and password of URLs, bearer and web tokens, and values of token parameters. */
  scrub(text: string): string;
}

const shown = "***";

/** A scrubber that knows no secret yet beyond the forms secrets come in. */
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
          // none of these looks at a character many times: texts of megabytes come here, too
          .replace(/:\/\/[^/\s"'@]+@/g, `://${shown}@`)
          .replace(/\beyJ[A-Za-z0-9_-]{8,500}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?/g, shown)
          .replace(/\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}/gi, `$1 ${shown}`)
          .replace(/\b((?:access_|auth_|api_?)?(?:token|key|secret|password)=)[^&\s"']+/gi, `$1${shown}`)
      );
    },
  };
}
