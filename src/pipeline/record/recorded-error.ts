import { RunvaultError } from "../../model/error.ts";
import type { Scrubber } from "../../model/text/scrubber.ts";
import { inJobWords } from "./in-job-words.ts";
import type { RecordedError } from "./job-record.ts";

/** Folders of this machine, by the words that stand for them in a record. */
export type NamedFolders = Readonly<Record<string, string | null | undefined>>;

/** Characters of a message, and of a hint: what a gateway says may be of any length, and a night has many errors. */
const longestText = 2_000;

/** What gateways call their routes: in a message such a path is none of this machine's. */
const route = /^\/(?:api|history|instances)(?:\/|$)/;

/** An error as a record keeps it, for a record goes along where its archive is moved or copied, and to people. */
export function recordedError(
  thrown: unknown,
  folders: NamedFolders,
  scrubber: Pick<Scrubber, "scrub">,
): RecordedError {
  const { code, message, hint, exit } = RunvaultError.from(thrown);
  const clean = (text: string) => {
    // a cut secret would be no secret that is known
    const bare = withoutPaths(scrubber.scrub(text).slice(0, 10 * longestText), folders);
    return bare.length <= longestText ? bare : `${bare.slice(0, longestText).toWellFormed()}…`;
  };
  return { code, message: clean(message), hint: hint === undefined ? null : clean(inJobWords(hint)), exit };
}

/**
 * A text without absolute paths: those of known folders begin with the words for these, `archive/runs/…`, and of any other
 * only its last name is left, `…/ca.pem`. Addresses stay, and what only looks like a path in the middle of a word.
 */
export function withoutPaths(text: string, folders: NamedFolders): string {
  const known = Object.entries(folders)
    .map(([word, folder]) => ({ word, folder: folder?.replace(/(?<=.)\/+$/, "") }))
    .filter((one): one is { word: string; folder: string } => /^\/[^/]/.test(one.folder ?? ""))
    // of one within another first
    .sort((a, b) => b.folder.length - a.folder.length);
  let clean = text;
  for (const { word, folder } of known) {
    const parts = clean.split(folder);
    clean = parts.reduce((before, after) => {
      const isWhole = isPathStart(before) && /^(?:$|[^\w.-]|\.(?:$|[^\w]))/.test(after);
      return `${before}${isWhole ? word : folder}${after}`;
    });
  }
  // in quotes with whatever blanks it has, elsewhere up to the first
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

/** A text without these characters at its end; in one go, for a text from outside may consist of them. */
function withoutEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text[end - 1]!)) end--;
  return text.slice(0, end);
}
