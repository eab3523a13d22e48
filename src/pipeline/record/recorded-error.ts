import { RunvaultError } from "../../model/error.ts";
import type { Scrubber } from "../../model/text/scrubber.ts";
import { inJobWords } from "./in-job-words.ts";
import type { RecordedError } from "./job-record.ts";

/** Folders of this machine, by the words that replace them in a record. */
export type NamedFolders = Readonly<Record<string, string | null | undefined>>;

/** Most characters of a message or hint: a gateway's text may have any length, and a night has many errors. */
const longestText = 2_000;

/** Routes of gateways: such a path in a message is not one of this machine. */
const route = /^\/(?:api|history|instances)(?:\/|$)/;

/** An error for a record, which is copied with its archive and shown to people. */
export function recordedError(
  thrown: unknown,
  folders: NamedFolders,
  scrubber: Pick<Scrubber, "scrub">,
): RecordedError {
  const { code, message, hint, exit } = RunvaultError.from(thrown);
  const clean = (text: string) => {
    // scrubbed before it is cut: half a secret would not be recognized
    const bare = withoutPaths(scrubber.scrub(text).slice(0, 10 * longestText), folders);
    return bare.length <= longestText ? bare : `${bare.slice(0, longestText).toWellFormed()}…`;
  };
  return { code, message: clean(message), hint: hint === undefined ? null : clean(inJobWords(hint)), exit };
}

/**
 * A text without absolute paths: known folders are replaced by their words, `archive/runs/…`, and of other paths only
 * the last name is left, `…/ca.pem`. Addresses stay, and so does what only looks like a path within a word.
 */
export function withoutPaths(text: string, folders: NamedFolders): string {
  const known = Object.entries(folders)
    .map(([word, folder]) => ({ word, folder: folder?.replace(/(?<=.)\/+$/, "") }))
    .filter((one): one is { word: string; folder: string } => /^\/[^/]/.test(one.folder ?? ""))
    // nested folders first
    .sort((a, b) => b.folder.length - a.folder.length);
  let clean = text;
  for (const { word, folder } of known) {
    const parts = clean.split(folder);
    clean = parts.reduce((before, after) => {
      const isWhole = isPathStart(before) && /^(?:$|[^\w.-]|\.(?:$|[^\w]))/.test(after);
      return `${before}${isWhole ? word : folder}${after}`;
    });
  }
  // quoted paths may contain blanks, others end at the first one
  return clean
    .replace(
      /(["'`])(\/(?!\/)[^"'`\n]*)\1/g,
      (_, quote: string, path: string) => `${quote}${lastName(path)}${quote}`,
    )
    .replace(/(^|[\s("'`=<[,;]|:|file:\/\/)(\/(?!\/)[^\s"'`()<>,;]+)/g, (_, before: string, path: string) => {
      const own = withoutEnd(path, ".:!?");
      return `${before}${lastName(own)}${path.slice(own.length)}`;
    });
}

function isPathStart(before: string): boolean {
  return !/[\w./-]$/.test(before);
}

function lastName(path: string): string {
  if (route.test(path)) return path;
  const name = withoutEnd(path, "/").split("/").at(-1)!;
  return name === "" ? "…" : `…/${name}`;
}

/** Trims these characters from the end in one pass, because a text from outside may consist of them. */
function withoutEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text[end - 1]!)) end--;
  return text.slice(0, end);
}
