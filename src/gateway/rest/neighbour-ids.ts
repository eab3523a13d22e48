/** A comparison that ignores some characters, and unused ids that it would match. */
interface Coarser {
  readonly isTaken: (id: string, other: string) => boolean;
  readonly probes: (id: string) => readonly string[];
}

const coarser: readonly Coarser[] = [
  {
    isTaken: (id, other) => id.toLowerCase() === other.toLowerCase(),
    probes: (id) => [
      otherCase(id),
      id.replace(/\p{L}/u, otherCase),
      id.replace(/\p{L}(?=\P{L}*$)/u, otherCase),
    ],
  },
  {
    isTaken: (id, other) => isDigits(id) && isDigits(other) && BigInt(id) === BigInt(other),
    probes: (id) => [`0${id}`, `00${id}`],
  },
  {
    isTaken: (id, other) => other.includes(id),
    probes: (id) => [id.slice(0, -1), id.slice(1)],
  },
  {
    isTaken: (id, other) => isPatternOf(id, other),
    probes: (id) => ["_", "?", "."].map((any) => id.replace(/[a-z0-9](?=[^a-z0-9]*$)/i, any)),
  },
];

/**
 * Unlisted ids to request: each finds something only at a gateway that compares so coarsely that it would confuse
 * another listed id with this one. Empty if no other id is so similar.
 */
export function neighbourProbes(id: string, listed: readonly string[]): string[] {
  const others = listed.filter((other) => other !== id);
  const known = new Set(listed);
  const least = listed.filter(isDigits).reduce<bigint | undefined>((low, one) => {
    const value = BigInt(one);
    return low === undefined || value < low ? value : low;
  }, undefined);
  // a list of numbers may have lost its beginning
  const mayBeUnlisted = (probe: string) =>
    isDigits(probe) && !probe.startsWith("0") && (least === undefined || BigInt(probe) < least);
  const probes = coarser.flatMap(({ isTaken, probes }) =>
    others.some((other) => isTaken(id, other)) ? probes(id) : [],
  );
  return [...new Set(probes)].filter(
    (probe) =>
      probe !== "" && probe !== id && !known.has(probe) && probe.isWellFormed() && !mayBeUnlisted(probe),
  );
}

function isDigits(text: string): boolean {
  return /^\d{1,40}$/.test(text);
}

function otherCase(id: string): string {
  return [...id].map((one) => (one === one.toLowerCase() ? one.toUpperCase() : one.toLowerCase())).join("");
}

/** Whether an id, read as a pattern of SQL's LIKE, a shell or a regular expression, matches another. */
function isPatternOf(id: string, other: string): boolean {
  if (!/[_%*?.]/.test(id) || id.length > 200 || id.replace(/[^%*]/g, "").length > 3) return false;
  const source = id.replace(/[\s\S]/g, (one) =>
    one === "%" || one === "*"
      ? "[\\s\\S]*"
      : "_?.".includes(one)
        ? "[\\s\\S]"
        : `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return new RegExp(`^${source}$`, "i").test(other);
}
