import type { TableName } from "../../../../model/profile/table.ts";
import { visible } from "../../../../model/text/visible-text.ts";
import type { ProfileSecret } from "../../profile.ts";
import { type DraftLine, indented, lineText, unsure } from "../draft-line.ts";
import { secretLines } from "./secret-lines.ts";

export interface ProfileDraft {
  readonly text: string;
  /** What the user could give to improve the draft. */
  readonly warning: string | undefined;
}

/** A table of a draft; `columns` is undefined if nothing is known about its rows. */
export interface DraftedTable {
  readonly name: TableName;
  readonly request: readonly DraftLine[];
  readonly times: DraftLine | undefined;
  readonly numbers: DraftLine | undefined;
  readonly columns: readonly DraftLine[] | undefined;
}

export interface DraftParts {
  readonly name: string;
  readonly headers: readonly ProfileSecret[];
  /** The folder of the draft. */
  readonly folder: string;
  readonly rest: readonly string[];
  /** Lines of `documents`; undefined if the gateway has them elsewhere. */
  readonly documents: readonly string[] | undefined;
  /** Whole sections between `documents` and `tables`. */
  readonly more?: readonly string[];
  readonly tables: readonly DraftedTable[];
  /** What identifies a table's request. */
  readonly by: "path" | "method";
  readonly missing: readonly TableName[];
  /** Comments at the end. */
  readonly notes: readonly string[];
}

/** Most unused paths and methods shown in a draft. */
export const mostShown = 20;

const openDocuments = `documents: ${unsure(undefined)}  # name the lists of instances and runs, or \`given: { INSTANCE: [RUN] }\``;

/**
 * A draft as a file. Lines that several tables share are written once, so they need confirming only once.
 */
export function draftText({
  name,
  headers,
  folder,
  rest,
  documents,
  more = [],
  tables,
  by,
  missing,
  notes,
}: DraftParts): string {
  const seen = tables.filter(({ columns }) => columns !== undefined);
  const times = shared(seen.map((table) => (table.times === undefined ? [] : [table.times])));
  const numbers = shared(seen.map((table) => (table.numbers === undefined ? [] : [table.numbers])));
  const columns = shared(seen.map((table) => table.columns ?? []));
  const ofRest = [...rest, ...times.map(lineText)];
  const ofRows = [
    ...numbers.map(lineText),
    ...(columns.length === 0 ? [] : ["columns:", ...indented(columns.map(lineText))]),
  ];
  const common = new Set([...times, ...numbers, ...columns].map(idOf));
  const lines = [
    "# A draft: compare each line with the gateway's documentation. If a value ends in ?, delete the ? to confirm it,",
    "# or write the right value. runvault does not accept this file while a ? remains.",
    "profile: 1",
    `name: ${name}`,
    ...secretLines("headers", headers, folder),
    ...section("rest", ofRest),
    ...(documents === undefined ? [] : section("documents", documents, openDocuments)),
    ...more,
    ...section("rows", ofRows),
    "tables:",
    ...tables.flatMap((table) => indented(tableText(table, common))),
  ];
  if (tables.length === 0)
    lines.push(
      `  ${unsure(undefined)}: none  # no ${by} that looks like a table${by === "path" ? " returned rows" : " was found"}`,
    );
  if (missing.length > 0)
    lines.push(
      `  # no ${by} was found for ${missing.join(", ")}: name each, or write \`none\` if there is no such history`,
    );
  lines.push(...notes.map((note) => `  # ${visible(note)}`));
  // a draft must not become a profile before somebody has read it
  if (!lines.slice(2).some((line) => /\?"/.test(line.split("  # ")[0]!)))
    lines[3] = `name: ${unsure(undefined)}  # name it once you have read each line`;
  return `${lines.join("\n")}\n`;
}

function idOf({ key, value }: DraftLine): string {
  return `${key}: ${value}`;
}

function section(key: string, lines: readonly string[], open?: string): string[] {
  if (lines.length > 0) return [`${key}:`, ...indented(lines)];
  return open === undefined ? [] : [open];
}

/** Lines that are equal, apart from reasons, in every table that has their key, if several do. */
function shared(tables: readonly (readonly DraftLine[])[]): DraftLine[] {
  const all = tables.flat();
  return [...new Map(all.map((line) => [line.key, line])).values()].filter((line) => {
    const same = all.filter(({ key }) => key === line.key);
    return same.length > 1 && same.every(({ value }) => value === line.value);
  });
}

function tableText(
  { name, request, times, numbers, columns }: DraftedTable,
  common: ReadonlySet<string>,
): string[] {
  const own = (line: DraftLine | undefined) =>
    line === undefined || common.has(idOf(line)) ? [] : [lineText(line)];
  const left = columns?.flatMap((line) => own(line));
  const columnLines =
    left === undefined
      ? [`columns: ${unsure(undefined)}  # no row was seen: say where each comes from, or remove the table`]
      : left.length === 0
        ? []
        : ["columns:", ...indented(left)];
  return [
    `${name}:`,
    ...indented([...request.map(lineText), ...own(times), ...own(numbers), ...columnLines]),
  ];
}
