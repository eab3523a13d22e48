/** A pattern for names: `*` stands for any number of characters, `?` for exactly one. */
export interface Glob {
  /** As written. */
  readonly pattern: string;
  /** Whether it has neither: then it is a name, which must exist. */
  readonly isExact: boolean;
  matches(name: string): boolean;
}

/** Characters with a meaning in other programs' patterns, but not here. */
const foreign = /[[\]{}\\!]|\*\*/;

/** What is wrong with a pattern, in words; null for nothing. */
export function globFault(pattern: string): string | null {
  return foreign.test(pattern)
    ? "has a special character other than * and ?, the only ones in patterns"
    : null;
}

/** Compiles a pattern; `textOf` decodes escapes in the text between wildcards. */
export function glob(pattern: string, textOf: (part: string) => string = (part) => part): Glob {
  const parts = pattern
    .split(/([*?])/)
    .flatMap((part): Part[] => (part === "*" || part === "?" ? [{ wild: part }] : [...textOf(part)]));
  return {
    pattern,
    isExact: !/[*?]/.test(pattern),
    matches: (name) => matchesParts(parts, [...name]),
  };
}

type Part = string | { readonly wild: string };

/** In time proportional to the product of both lengths, whatever the pattern: only the last `*` is ever retried. */
function matchesParts(parts: readonly Part[], name: readonly string[]): boolean {
  let part = 0;
  let at = 0;
  let star = -1;
  let starAt = 0;
  while (at < name.length) {
    const wanted = parts[part];
    if (typeof wanted === "object" && wanted.wild === "*") {
      star = part++;
      starAt = at;
    } else if (wanted !== undefined && (typeof wanted === "object" || wanted === name[at])) {
      part++;
      at++;
    } else if (star >= 0) {
      part = star + 1;
      at = ++starAt;
    } else {
      return false;
    }
  }
  while (part < parts.length) {
    const rest = parts[part++];
    if (typeof rest !== "object" || rest.wild !== "*") return false;
  }
  return true;
}
