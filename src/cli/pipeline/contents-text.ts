import { alignedTable } from "../../analytics/render/aligned-table.ts";
import { tableNames } from "../../model/profile/table.ts";
import { formatRun } from "../../model/run-argument.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { grouped } from "../../model/text/number-text.ts";
import { plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import type { CommandToCopy } from "../output/command-to-copy.ts";
import { fitColumns } from "../output/fit-columns.ts";
import { fitNames } from "../output/fit-names.ts";
import { minuteText } from "../output/minute-text.ts";
import type { Session } from "../process/session.ts";
import type { ArchiveContents } from "./archive-contents.ts";

/** The most instances and sources that fit on one screen with the rest. */
const mostInstances = 8;
const mostSources = 3;

/** The contents of an archive, as lines of a name and a text. */
export function contentsLines(contents: ArchiveContents, command: CommandToCopy): [string, string][] {
  const { sources, bytes, newestCommit, disks, pending } = contents;
  const data = bytes.segments + bytes.parquet + bytes.documents;
  const lines: [string, string][] = [
    ...firstOf(sources, mostSources, "source", ({ addresses }) => addresses.join(", also ")),
    ["rows", rowsText(contents)],
    [
      "data",
      `${byteText(data)} in ${count(contents.files, "file")}: segments ${byteText(bytes.segments)}, Parquet ${byteText(bytes.parquet)}, documents ${byteText(bytes.documents)}`,
    ],
  ];
  if (pending.length > 0)
    lines.push([
      "pending",
      `${byteText(bytes.pending)} of ${count(pending.length, "run")}, not committed: \`${visible(command("runs", "--state", "pending"))}\``,
    ]);
  if (bytes.quarantine > 0)
    lines.push(["set aside", `${count(contents.rowsSetAside, "row")}, ${byteText(bytes.quarantine)}`]);
  if (contents.tablesAccepted > 0)
    lines.push([
      "accepted",
      `${count(contents.tablesAccepted, "table")} not proven: \`${visible(command("runs"))}\` lists them with their reasons`,
    ]);
  if (bytes.replaced > 0)
    lines.push([
      "replaced",
      `${byteText(bytes.replaced)}, kept for readers for an hour and until the next job`,
    ]);
  if (bytes.cache > 0) lines.push(["cache", byteText(bytes.cache)]);
  if (bytes.jobs > 0) lines.push(["job records", byteText(bytes.jobs)]);
  // the archive's own disk is shown with how long it lasts
  for (const { folder, freeBytes } of disks.slice(1))
    lines.push(["scratch disk", `${byteText(freeBytes)} free (${visible(folder)})`]);
  if (newestCommit !== null)
    lines.push([
      "newest",
      visible(`${formatRun(newestCommit)}, committed ${minuteText(newestCommit.committedAt)}`),
    ]);
  return lines;
}

function rowsText({ rows }: ArchiveContents): string {
  const named = tableNames.filter((name) => rows[name] > 0);
  const all = named.reduce((sum, name) => sum + rows[name], 0);
  const each = named.map((name) => `${name} ${grouped(rows[name])}`).join(", ");
  return named.length === 0 ? "none" : `${grouped(all)}: ${each}`;
}

/** The instances with the newest commits; says how many there are if not all are shown. */
export function instancesText({ instances }: ArchiveContents, session: Session): string {
  if (instances.length === 0) return "";
  const latest = instances.toSorted((a, b) => (a.newestCommit > b.newestCommit ? -1 : 1));
  const shown = latest.slice(0, mostInstances);
  const column = (name: string, isRight: boolean, cellOf: (one: (typeof shown)[number]) => string) => ({
    ...{ name, isRight, cells: shown.map(cellOf) },
  });
  const notes: string[] = [];
  // below the table, which is not at the top here
  const below = { terminal: session.terminal, note: (text: string) => notes.push(text) };
  const columns = fitColumns(
    [
      column("runs", true, ({ runs }) => grouped(runs)),
      column("rows", true, ({ rows }) => grouped(rows)),
      column("size", true, ({ bytes }) => byteText(bytes)),
      column("newest commit (UTC)", false, ({ newestCommit }) => newestCommit.slice(0, 16).replace("T", " ")),
    ],
    below,
    "--json",
  );
  const table = fitNames(
    shown.map(({ instanceId }) => instanceId),
    (ids) =>
      alignedTable(
        ["instance", ...columns.map(({ name }) => name)],
        ids.map((id, index) => [id, ...columns.map(({ cells }) => cells[index]!)]),
        [false, ...columns.map(({ isRight }) => isRight)],
      ),
    below,
    "--json",
  );
  const all = grouped(instances.length);
  if (shown.length < instances.length)
    notes.push(`the ${shown.length} of ${all} with the newest commits; --json lists all`);
  return `\n${table}${notes.map((text) => `${text}\n`).join("")}`;
}

function firstOf<T>(
  all: readonly T[],
  most: number,
  name: string,
  textOf: (one: T) => string,
): [string, string][] {
  const more = all.length - most;
  const rest: [string, string][] =
    more > 0 ? [[name, `${most} of ${all.length} are shown; --json lists all`]] : [];
  return [...all.slice(0, most).map((one): [string, string] => [name, visible(textOf(one))]), ...rest];
}

function count(number: number, noun: string): string {
  return `${grouped(number)} ${plural(number, noun)}`;
}
