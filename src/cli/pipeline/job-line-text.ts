import { runState } from "../../archive/manifest/manifest.ts";
import { exit } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { grouped, tookText } from "../../model/text/number-text.ts";
import { countText, plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import type { AfterLine, RecordLine, ResultLine, RunLine } from "../../pipeline/record/job-record.ts";
import type { Session } from "../process/session.ts";
import { countsText, planText } from "./counts-text.ts";

/** A record line in words; empty if people need not see it, or with --quiet if nothing is wrong. */
export function lineText(
  job: string,
  line: RecordLine,
  session: Pick<Session, "globals" | "paint" | "toCopy">,
): string {
  const { quiet } = session.globals;
  switch (line.kind) {
    case "begin":
      return quiet ? "" : `${job}: execution ${line.id} began\n`;
    case "plan":
      return quiet ? "" : `${job}: ${planText(line)}\n`;
    case "run":
      return quiet && line.exit === exit.done ? "" : runText(line, session);
    case "after":
      return quiet && line.result !== "failed" ? "" : afterText(line);
    case "told":
      return line.result === "failed" ? `${line.to} could not be notified\n` : "";
    case "result":
      return quiet && line.exit === exit.done ? "" : resultText(job, line);
  }
}

function runText(line: RunLine, { paint, toCopy }: Pick<Session, "paint" | "toCopy">): string {
  const name = visible(formatRun({ instanceId: line.instance, runId: line.run }));
  const lines = [`${name}  ${standingText(line, paint)}`];
  if (line.error !== null) {
    lines.push(`  ${visible(`${line.error.code}: ${line.error.message}`)}`);
    if (line.error.hint !== null) lines.push(`  hint: ${visible(toCopy(line.error.hint))}`);
  }
  const hints = new Map<string, string[]>();
  for (const [table, { state, error }] of Object.entries(line.tables)) {
    if (error === null || line.exit === exit.done) continue;
    lines.push(`  ${table}  ${paint(state)}: ${visible(error.message)}`);
    if (error.hint !== null) hints.set(error.hint, [...(hints.get(error.hint) ?? []), table]);
  }
  for (const [hint, tables] of hints) lines.push(`  hint for ${tables.join(", ")}: ${visible(toCopy(hint))}`);
  return `${lines.join("\n")}\n`;
}

function standingText(line: RunLine, paint: Session["paint"]): string {
  const { result, rows, bytes, seconds } = line;
  const state = paint(runState(Object.values(line.tables).map((table) => table.state)));
  switch (result) {
    case "archived": {
      const what =
        rows === 0 ? "no rows fetched" : `${grouped(rows)} ${plural(rows, "row")}, ${byteText(bytes)}`;
      return `${state}  ${what} in ${tookText(seconds * 1000)}`;
    }
    case "unchanged":
      return `${state}  up to date`;
    case "by_other":
      return `${state}  archived meanwhile by another process`;
    case "gone":
      return `${state}  gone: the gateway no longer has it`;
    case "held":
      return "held by another process";
    case "stopped":
      return "stopped: the next execution continues it";
    case "not_tried":
      return "not tried";
    case "failed":
      return paint("failed");
  }
}

function afterText({ what, out, result, rows, seconds, error, verdict, removed }: AfterLine): string {
  const names = {
    verify: "verification",
    reconcile: "reconciliation of",
    report: "report of",
    keep: "retention",
    export: "export",
  };
  const name = `${names[what]} ${visible(out ?? "")}`.trimEnd();
  if (result === "unchanged") return `${name}: unchanged\n`;
  if (result === "failed") return `${name}: failed: ${visible(error?.message ?? "")}\n`;
  if (removed !== undefined) {
    if (isNothing(removed)) return "";
    const named = removedRuns(removed).map((run) => `removed ${run}\n`);
    return `${named.join("")}${name}: ${removedText(removed)} in ${tookText(seconds * 1000)}\n`;
  }
  if (verdict !== undefined) return `${name}: ${verdict} in ${tookText(seconds * 1000)}\n`;
  const counted =
    what === "report" ? "written" : rows === null ? "sound" : `${grouped(rows)} ${plural(rows, "row")}`;
  return `${name}: ${counted} in ${tookText(seconds * 1000)}\n`;
}

type Removed = NonNullable<AfterLine["removed"]>;

/** Whether retention had nothing to remove, as in most nights. */
export function isNothing({ runs, garbage }: Removed): boolean {
  return runs === 0 && garbage === 0;
}

/** The runs that retention removed, as `rm` names them. */
export function removedRuns({ named }: Removed): string[] {
  return named.map(
    ({ instance, run, bytes }) =>
      `${visible(formatRun({ instanceId: instance, runId: run }))}  ${byteText(bytes)}`,
  );
}

/** What retention removed. */
export function removedText({ runs, bytes, garbage }: Removed): string {
  const unneeded = garbage === 0 ? "" : `, and ${byteText(garbage)} that no run needed`;
  return `removed ${countText(runs, "run")}, ${byteText(bytes)}${unneeded}`;
}

function resultText(job: string, line: ResultLine): string {
  const { rows, bytes, requests, seconds, results, error } = line;
  const fetched = rows === 0 ? "" : `; ${grouped(rows)} ${plural(rows, "row")}, ${byteText(bytes)}`;
  const asked = `${grouped(requests)} ${plural(requests, "request")}`;
  const end = line.exit === exit.done ? "done" : error === null ? "with problems" : visible(error.message);
  const expiring =
    line.expiring === 0
      ? ""
      : `; ${countText(line.expiring, "run")} unproven and about to expire at the gateway`;
  return `${job}: ${end} (exit ${line.exit}); ${countsText(results)}${fetched}${expiring}; ${asked} in ${tookText(seconds * 1000)}\n`;
}
