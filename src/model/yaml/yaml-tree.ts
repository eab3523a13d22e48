import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
} from "yaml";
import type { Entry, Place, TreeFault, TreeNode } from "./tree.ts";

/** Deeper than any of our files, and shallow enough for recursion. */
const deepest = 16;

/** The contents of a YAML text: its tree, null if unusable, and its errors. */
export interface ReadTree {
  readonly tree: TreeNode | null;
  readonly faults: readonly TreeFault[];
}

/**
 * Parses YAML 1.2 in the form of our files: one document, unique text keys, no anchors, aliases, merge keys, tags or
 * directives. `placeOf` gives the place of a position in the text.
 */
export function readYamlTree(text: string, fixedPlace?: Place): ReadTree {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    version: "1.2",
    schema: "core",
    strict: true,
    uniqueKeys: true,
    merge: false,
    prettyErrors: false,
    logLevel: "error",
  });
  const placeOf = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return fixedPlace ?? { kind: "file", line, column: col };
  };
  const faults: TreeFault[] = [];
  const fault = (at: number, message: string, hint: string) =>
    faults.push({ place: placeOf(at), key: null, text: null, message, hint });

  const lastOfLine = new Set<string>();
  for (const { code, pos, message: said } of document.errors) {
    const [message, hint] = wordsFor(code, said, keyFrom(text, pos[0]));
    const at = /closing .quote$/.test(said) ? openingOf(document, pos[0]) : pos[0];
    const place = placeOf(at);
    // one mistake often causes several errors
    const line = place.kind === "file" ? `${place.line} ${code}` : code;
    if (!lastOfLine.has(line)) fault(at, message, hint);
    lastOfLine.add(line);
  }
  const isBroken = document.errors.some(({ code }) => code !== "DUPLICATE_KEY");
  if (!isBroken && document.directives?.yaml.explicit === true) {
    fault(0, "a %YAML directive cannot be used here", "Remove the line: the file is read as YAML 1.2.");
  }
  if (isBroken) return { tree: null, faults };
  const contents = document.contents as Node | null;
  if (contents === null || (isScalar(contents) && contents.value === null && contents.source === "")) {
    return { tree: null, faults };
  }
  return { tree: treeOf(contents, document, { placeOf, fault }, deepest), faults };
}

interface Reading {
  placeOf(offset: number): Place;
  fault(at: number, message: string, hint: string): void;
}

function treeOf(node: Node | null, document: Document, reading: Reading, depth: number): TreeNode {
  const at = node?.range?.[0] ?? 0;
  const place = reading.placeOf(at);
  const nothing: TreeNode = {
    kind: "scalar",
    place,
    value: null,
    written: "",
    isQuoted: false,
    variables: [],
  };
  if (node === null) return nothing;
  const unread: TreeNode = { ...nothing, isUnread: true };
  if (isAlias(node)) {
    reading.fault(at, ...aliasWords);
    return unread;
  }
  const { anchor, tag } = node as { anchor?: string; tag?: string };
  if (anchor !== undefined)
    reading.fault(at, "an anchor (&) cannot be used here", "Write the value out where it is needed.");
  if (tag !== undefined && document.errors.length === 0) {
    reading.fault(at, "a tag (!) cannot be used here", "Write only the value, text in quotes.");
  }
  if (depth === 0) {
    reading.fault(
      at,
      `values are nested deeper than ${deepest} levels`,
      "No key is nested that deeply: correct the indentation.",
    );
    return unread;
  }
  if (isSeq(node)) {
    return {
      kind: "list",
      place,
      items: node.items.map((item) => treeOf(item as Node | null, document, reading, depth - 1)),
    };
  }
  if (isMap(node)) {
    const entries = new Map<string, Entry>();
    for (const { key, value } of node.items) {
      const keyAt = (key as Node | null)?.range?.[0] ?? at;
      const child = treeOf(value as Node | null, document, reading, depth - 1);
      if (isAlias(key)) {
        reading.fault(keyAt, ...aliasWords);
      } else if (!isScalar(key)) {
        reading.fault(keyAt, "a list or map cannot be used as a key", "Write the key as one word.");
      } else if (key.anchor !== undefined || key.tag !== undefined) {
        reading.fault(keyAt, "anchors and tags cannot be used here", "Write only the key.");
      } else {
        const name = key.source ?? String(key.value);
        if (name === "<<")
          reading.fault(keyAt, "a merge key (<<) cannot be used here", "Write the keys out.");
        else if (!entries.has(name)) {
          const isQuoted =
            key.type !== undefined && key.type !== "PLAIN" ? ({ isQuoted: true } as const) : {};
          entries.set(name, { key: reading.placeOf(keyAt), value: child, ...isQuoted });
        } else if (document.errors.length === 0) {
          // the parser takes 1 and "1" for different keys
          reading.fault(keyAt, `the key ${name} was given before`, "Remove one of the two.");
        }
      }
    }
    return { kind: "map", place, entries };
  }
  if (!isScalar(node)) return nothing;
  const isQuoted = node.type !== "PLAIN";
  const { value } = node;
  const isKnown = value === null || ["string", "number", "boolean"].includes(typeof value);
  return {
    kind: "scalar",
    place,
    value: isKnown ? (value as string | number | boolean | null) : String(value),
    written: isQuoted ? String(value) : (node.source ?? String(value)),
    isQuoted,
    variables: [],
  };
}

const aliasWords = [
  "an alias (*) cannot be used here",
  'Write the value out; a pattern that begins with * goes in quotes, such as "*-2".',
] as const;

const indentation = [
  "the indentation does not fit the lines around it",
  "Indent with spaces: equally for all keys of a map, further for what belongs to a key.",
] as const;

/** The key that begins there, with a space before it; empty unless it has only plain letters. */
function keyFrom(text: string, at: number): string {
  const [name] = /^[\w-]{1,60}/.exec(text.slice(at, at + 60)) ?? [];
  return name === undefined ? "" : ` ${name}`;
}

/** Where the last quoted text before a position begins; an unclosed quote starts there. */
function openingOf(document: Document, before: number): number {
  let found = -1;
  visit(document, {
    Scalar: (_, { type, range }) => {
      const at = range?.[0] ?? -1;
      if (type?.startsWith("QUOTE_") === true && at < before) found = Math.max(found, at);
    },
  });
  return found < 0 ? before : found;
}

/** A parser error in our words, because its own may quote the file. */
function wordsFor(code: string, said: string, key: string): readonly [message: string, hint: string] {
  if (code === "DUPLICATE_KEY") return [`the key${key} was given before`, "Remove one of the two."];
  if (code === "MISSING_CHAR" && /quote$/.test(said)) {
    return ["these quotes are not closed", "Close them; inside single quotes, a quote is written twice."];
  }
  if (/^Implicit map keys|^Sequence item/.test(said)) return syntaxWords.MULTILINE_IMPLICIT_KEY!;
  if (/^Missing [,}\]]|^Flow .* must end/.test(said) || (code === "BAD_INDENT" && said.startsWith("Flow"))) {
    return [
      "the brackets or braces before this are not closed, or lack a comma",
      "Close them, or put a text that has [, ], {, } or a comma in it in quotes.",
    ];
  }
  return syntaxWords[code] ?? syntaxWords.IMPOSSIBLE!;
}

/** By the parser's codes. */
const syntaxWords: Readonly<Record<string, readonly [message: string, hint: string]>> = {
  ALIAS_PROPS: aliasWords,
  BAD_ALIAS: aliasWords,
  BAD_DIRECTIVE: [
    "a line that begins with % cannot be used here",
    "Remove the line, or put the text in quotes.",
  ],
  BAD_DQ_ESCAPE: [
    "there is no such escape in double quotes",
    "Use single quotes, in which \\ is an ordinary character.",
  ],
  BAD_INDENT: indentation,
  BAD_SCALAR_START: [
    "a text cannot begin with this character unless it is in quotes",
    "Put the text in quotes.",
  ],
  BLOCK_AS_IMPLICIT_KEY: [
    "there are two keys on one line",
    "Put text with a colon and a space in quotes, or put each key on its own line.",
  ],
  BLOCK_IN_FLOW: [
    "a list or map in brackets cannot contain one that is written line by line",
    "Use brackets and braces inside brackets and braces.",
  ],
  MISSING_CHAR: [
    "a space is missing: after a key's colon, before a #, or after a tag or anchor",
    "Put text with these characters in quotes.",
  ],
  KEY_OVER_1024_CHARS: ["this key is too long", "Check the quotes and colons before it."],
  MULTILINE_IMPLICIT_KEY: [
    "this line has no colon followed by a space",
    "Write `key: value`, with a space after the colon.",
  ],
  MULTIPLE_DOCS: [
    "a second document begins here, but a file can have only one",
    "Remove the line ---, or move the second document to its own file.",
  ],
  TAB_AS_INDENT: ["a tab is used as indentation", "Indent with spaces."],
  TAG_RESOLVE_FAILED: ["a tag (!) cannot be used here", "Write only the value, text in quotes."],
  UNEXPECTED_TOKEN: [
    "this does not belong here",
    "Look for brackets, braces and quotes that were not closed, or closed twice.",
  ],
  IMPOSSIBLE: ["this is not valid YAML", "Look at this line and the one before."],
};
