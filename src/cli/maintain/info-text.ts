import { alignedTable } from "../../analytics/render/aligned-table.ts";
import { tableStates } from "../../archive/manifest/manifest.ts";
import { tableNames } from "../../model/profile/table.ts";
import { formatRun } from "../../model/run-argument.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { grouped } from "../../model/text/number-text.ts";
import { plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import type { CommandToCopy } from "../output/command-to-copy.ts";
import { fitNames } from "../output/fit-names.ts";
import { keyedLines } from "../output/keyed-lines.ts";
import { minuteText } from "../output/minute-text.ts";
import type { Session } from "../process/session.ts";
import type { ArchiveInfo } from "./archive-info.ts";

/** The most instances and sources that fit beside the rest on one screen. */
const mostInstances = 8;
const mostSources = 3;

/** An archive in words, on one screen. */
export function infoText(info: ArchiveInfo, command: CommandToCopy, session: Session): string {
  const { archive, sources, bytes, oldestUnproven, newestCommit, disks } = info;
  const lines: [string, string][] = [
    ["archive", visible(archive.dir)],
    ["identity", `${archive.id}, format ${archive.format}, made ${visible(minuteText(archive.createdAt))}`],
    ...firstOf(sources, mostSources, "source", ({ addresses }) => addresses.join(", also ")),
    ["runs", runsText(info, session)],
    ["rows", rowsText(info)],
    [
      "data",
      `${byteText(bytes.segments + bytes.parquet + bytes.documents)} in ${count(info.files, "file")}: segments ${byteText(bytes.segments)}, Parquet ${byteText(bytes.parquet)}, documents ${byteText(bytes.documents)}`,
    ],
  ];
  if (info.pending.length > 0)
    lines.push([
      "pending",
      `${byteText(bytes.pending)} of ${count(info.pending.length, "run")}, not committed: \`${visible(command("runs", "--state", "pending"))}\``,
    ]);
  if (bytes.quarantine > 0)
    lines.push(["set aside", `${count(info.rowsSetAside, "row")}, ${byteText(bytes.quarantine)}`]);
  if (info.tablesAccepted > 0)
    lines.push([
      "accepted",
      `${count(info.tablesAccepted, "table")} not proven: \`${visible(command("runs"))}\` says which, and why`,
    ]);
  if (bytes.replaced > 0)
    lines.push([
      "replaced",
      `${byteText(bytes.replaced)}, kept for readers for an hour and until the next job`,
    ]);
  if (bytes.cache > 0) lines.push(["cache", byteText(bytes.cache)]);
  if (bytes.jobs > 0) lines.push(["jobs", `${byteText(bytes.jobs)} of records`]);
  for (const { folder, freeBytes } of disks)
    lines.push(["disk", `${byteText(freeBytes)} free${disks.length > 1 ? ` (${visible(folder)})` : ""}`]);
  if (newestCommit !== null)
    lines.push([
      "newest",
      visible(`${formatRun(newestCommit)}, committed ${minuteText(newestCommit.committedAt)}`),
    ]);
  if (oldestUnproven === null) lines.push(["unproven", info.runs === 0 ? "" : "none"]);
  else {
    const { table, reason, command } = oldestUnproven;
    lines.push(
      ["unproven", visible(`the longest: ${formatRun(oldestUnproven)}  ${table}: ${reason}`)],
      ["", visible(`\`${command}\` fetches what is missing`)],
    );
  }
  // states are coloured already, and all else has been made harmless
  return `${keyedLines(lines, session)}${instancesText(info, session)}`;
}

function runsText({ runs, states, damaged, instances, pending }: ArchiveInfo, { paint }: Session): string {
  const counted = tableStates
    .filter((state) => states[state] > 0)
    .map((state) => `${grouped(states[state])} ${paint(state)}`);
  if (damaged > 0) counted.push(`${grouped(damaged)} ${paint("damaged")}`);
  const committed =
    counted.length === 0
      ? "none"
      : `${grouped(runs + damaged)} in ${count(instances.length, "instance")}: ${counted.join(", ")}`;
  const first = pending.filter(({ isCommitted }) => !isCommitted).length;
  if (first === 0) return committed;
  return `${committed}; besides, ${grouped(first)} ${paint("pending")}, not committed yet`;
}

function rowsText({ rows }: ArchiveInfo): string {
  const named = tableNames.filter((name) => rows[name] > 0);
  const all = named.reduce((sum, name) => sum + rows[name], 0);
  const each = named.map((name) => `${name} ${grouped(rows[name])}`).join(", ");
  return named.length === 0 ? "none" : `${grouped(all)}: ${each}`;
}

/** The instances committed to last; where there are more, how many. */
function instancesText({ instances }: ArchiveInfo, session: Session): string {
  if (instances.length === 0) return "";
  const latest = instances.toSorted((a, b) => (a.newestCommit > b.newestCommit ? -1 : 1));
  const shown = latest.slice(0, mostInstances);
  const names = ["instance", "runs", "rows", "size", "newest commit (UTC)"];
  const right = [false, true, true, true, false];
  const table = fitNames(
    shown.map(({ instanceId }) => instanceId),
    (ids) =>
      alignedTable(
        names,
        shown.map(({ runs, rows, bytes, newestCommit }, index) => [
          ids[index]!,
          grouped(runs),
          grouped(rows),
          byteText(bytes),
          newestCommit.slice(0, 16).replace("T", " "),
        ]),
        right,
      ),
    session,
    "--json",
  );
  const all = grouped(instances.length);
  const rest =
    shown.length === instances.length
      ? ""
      : `the ${shown.length} of ${all} with the newest commits; --json lists all\n`;
  return `\n${table}${rest}`;
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
