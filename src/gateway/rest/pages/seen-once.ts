import { createHash } from "node:crypto";

/** All values up to this number are remembered; of later ones, those at powers of two. */
const mostRemembered = 65_536;

/**
 * Detects repeated values in bounded memory. A cycle is found after two rounds at the latest, however late it begins.
 */
export class SeenOnce {
  readonly #seen = new Set<string>();
  #count = 0;
  #milestone: string | undefined;
  #nextMilestone = mostRemembered;

  /** Whether it was there before; remembers it. */
  isAgain(value: Uint8Array | string): boolean {
    const key = createHash("sha256").update(value).digest("base64").slice(0, 24);
    if (this.#seen.has(key) || key === this.#milestone) return true;
    this.#count++;
    if (this.#count <= mostRemembered) this.#seen.add(key);
    else if (this.#count > this.#nextMilestone) {
      this.#milestone = key;
      this.#nextMilestone *= 2;
    }
    return false;
  }
}
