import type { JobFile } from "../../pipeline/file/job-files.ts";
import { hooks, type JobExport, type JobSchedule } from "../../pipeline/file/job-schema.ts";

/** What a job would do, as lines of a word and a text; nothing in them comes from the environment. */
export function jobSummary(file: JobFile, starts: readonly Date[]): string[] {
  const { schedule } = file.job;
  const lines: (readonly [string, string])[] = [
    ["job", asWritten(file, "name")],
    ["from", asWritten(file, "gateway", "url")],
    ["into", asWritten(file, "archive")],
    ["runs", runsText(file)],
    ["tables", listText(file, file.job.tables, "tables")],
    ["then", thenText(file)],
  ];
  const told = toldText(file);
  if (told !== "") lines.push(["tells", told]);
  if (schedule === undefined) lines.push(["starts", "only by `runvault run`: the file has no schedule"]);
  else
    lines.push(
      ["starts", scheduleText(file)],
      ...starts.map((start) => ["", startText(start, schedule)] as const),
    );
  return lines.map(([word, text]) => `${word.padEnd(8)}${text}`);
}

/** The file's text at a key, or empty. */
function asWritten({ written }: JobFile, ...path: (string | number)[]): string {
  return written(...path) ?? "";
}

/** A list, or the one word in its place, as written in the file, or the default. */
function listText(file: JobFile, values: string | readonly string[], ...path: (string | number)[]): string {
  if (typeof values === "string") return file.written(...path) ?? values;
  return values.map((value, index) => file.written(...path, index) ?? value).join(", ");
}

function runsText(file: JobFile): string {
  const { runs } = file.job;
  if (runs === undefined) return asWritten(file, "run");
  const instances = runs.instances.map(({ pattern }) => pattern);
  const parts = [
    `${listText(file, runs.status, "runs", "status")} of ${listText(file, instances, "runs", "instances")}`,
  ];
  if (runs.ended_within !== undefined) parts.push(`ended within ${asWritten(file, "runs", "ended_within")}`);
  const excluded = runs.exclude.map(() => "");
  if (excluded.length > 0) parts.push(`but not ${listText(file, excluded, "runs", "exclude")}`);
  return parts.join("; ");
}

function thenText(file: JobFile): string {
  const { verify, reconcile, reports, exports } = file.job.after;
  const exported = exports.map(
    (one, index) =>
      `export ${exportText(file, one, index)} to ${asWritten(file, "after", "exports", index, "out")}`,
  );
  const reconciled = reconcile === undefined ? [] : ["reconcile what was committed"];
  const reported =
    reports === undefined ? [] : [`write reports to ${asWritten(file, "after", "reports", "out")}`];
  const verified = `verify ${listText(file, verify, "after", "verify")}`;
  const kept = [
    ["runs", "remove runs that ended longer ago than"],
    ["disk", "keep the archive below"],
  ].flatMap(([key = "", words]) => {
    const written = asWritten(file, "keep", key);
    return written === "" ? [] : [`${words} ${written}`];
  });
  return [verified, ...reconciled, ...reported, ...kept, ...exported].join("; ");
}

function exportText(file: JobFile, { tables, symbols }: JobExport, index: number): string {
  const at = (key: string) => ["after", "exports", index, key] as const;
  const last = file.written(...at("last"));
  const limits = [
    symbols === undefined ? null : listText(file, symbols, ...at("symbols")),
    last === null ? null : `last ${last}`,
  ].filter((limit) => limit !== null);
  const names = listText(file, tables, ...at("tables"));
  return `${tables === "all" ? `${names} tables` : names}${limits.length === 0 ? "" : ` (${limits.join("; ")})`}`;
}

function toldText(file: JobFile): string {
  const { notify, metrics } = file.job;
  const { heartbeat, command } = notify;
  const said = (...path: string[]) => asWritten(file, ...path);
  const parts = [
    heartbeat === undefined ? null : `heartbeat at ${said("notify", "heartbeat", "url_env")}`,
    ...hooks.map((hook) => {
      const { on } = notify[hook] ?? {};
      return on === undefined
        ? null
        : `${hook} at ${said("notify", hook, "url_env")} (${listText(file, on, "notify", hook, "on")})`;
    }),
    command === undefined ? null : `program ${asWritten(file, "notify", "command", 0)}`,
    metrics === undefined
      ? null
      : `metrics to ${said("metrics", "textfile") || said("metrics", "pushgateway")}`,
  ];
  return parts.filter((part) => part !== null).join(", ");
}

function scheduleText(file: JobFile): string {
  const said = (key: string) => asWritten(file, "schedule", key);
  const late = said("jitter") === "" ? "" : `, each up to ${said("jitter")} later`;
  const deadline = said("deadline") === "" ? "" : `, for at most ${said("deadline")}`;
  return `${said("cron")} in ${said("timezone")}${late}${deadline}:`;
}

/** A start on the clock of its time zone, and in UTC. */
function startText(start: Date, { timezone }: JobSchedule): string {
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone: timezone,
    weekday: "short",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  }).formatToParts(start);
  const part = (type: Intl.DateTimeFormatPartTypes) =>
    parts.find((found) => found.type === type)?.value ?? "";
  const local = `${part("weekday")} ${part("year")}-${part("month")}-${part("day")} ${part("hour")}:${part("minute")}`;
  return `${local} (${start.toISOString().slice(0, 16).replace("T", " ")} UTC)`;
}
