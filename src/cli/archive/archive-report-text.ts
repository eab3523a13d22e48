import { driftText } from "../../archive/convert/drift.ts";
import { acceptanceOf, acceptanceText } from "../../archive/manifest/acceptance.ts";
import { attemptHint, attemptReason, provenText } from "../../archive/manifest/attempt-text.ts";
import type { Manifest, TableManifest } from "../../archive/manifest/manifest.ts";
import { toldView } from "../../archive/manifest/table-view.ts";
import { exit } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { grouped, tookText } from "../../model/text/number-text.ts";
import { countText, plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import type { ReportForm } from "../options/report-form.ts";
import { notedTable } from "../output/noted-table.ts";
import type { Painter } from "../output/painter.ts";
import { wrapLines } from "../output/wrap-lines.ts";
import type { RunReport } from "./archive-report.ts";

/** A run's report: one line if all is well and no tables are asked for; else its tables and what is wrong. */
export function reportText(report: RunReport, form: ReportForm): string {
  const { paint, withTables, nameColumns, columns } = form;
  const { outcome } = report;
  const name = visible(formatRun(report));
  if (outcome === null) return `${name.padEnd(nameColumns)}  ${failureText(report, paint)}\n`;
  const { manifest, warnings } = outcome;
  const told = warnings.map((text) => `  warning: ${visible(text)}\n`);
  if (report.exit === exit.done && !withTables) {
    const line = `${name.padEnd(nameColumns)}  ${paint(manifest.state.padEnd(8))}  ${howText(report, true)}\n`;
    return wrapLines([line, ...told, ...newsOf(report)].join(""), columns);
  }
  const head = `${name}  ${paint(manifest.state)}  generation ${manifest.generation}\n`;
  const how = `  ${howText(report, false)}\n`;
  const top = wrapLines([head, how, tablesText(manifest, form)].join(""), columns);
  const rest = wrapLines([...told, ...asideLines(report)].join(""), columns);
  // the terminal wraps hints: a command in them stays one line to copy
  return [top, ...hintLines(manifest), rest].join("");
}

function failureText({ error }: RunReport, paint: Painter): string {
  const { code, message } = error!;
  if (code === "incomplete") return `${paint("INCOMPLETE")}: ${visible(message)}`;
  return code === "interrupted" ? "stopped" : `${paint("failed")}: ${code}`;
}

/** What the job did. The short form leaves out the rate. */
function howText({ outcome, seconds, retries }: RunReport, isShort: boolean): string {
  const { changed, rows, bytes, resumedSegments } = outcome!;
  const repeated = retries === 0 ? "" : `, ${grouped(retries)} ${retries === 1 ? "retry" : "retries"}`;
  if (!changed) return `up to date${repeated}`;
  const took = tookText(seconds * 1000);
  const rate = isShort || seconds < 0.1 ? "" : ` (${grouped(Math.round(rows / seconds))} rows/s)`;
  const here = rowsHere(outcome!.manifest);
  if (rows === 0 && resumedSegments > 0 && here !== null) {
    return `${rowsText(here)}, all fetched before${repeated}`;
  }
  const again = here !== null && rows > here ? " fetched, some of them again" : "";
  const fetched =
    rows === 0
      ? `no rows fetched in ${took}`
      : `${rowsText(rows)}${again}, ${byteText(bytes)} in ${took}${rate}`;
  const resumed = `${countText(resumedSegments, "segment")} ${resumedSegments === 1 ? "was" : "were"} already here`;
  return `${fetched}${repeated}${resumedSegments === 0 ? "" : `; resumed: ${resumed}`}`;
}

/** Rows of all tables after the job; null if some are unknown. */
function rowsHere({ tables }: Manifest): number | null {
  const counts = Object.values(tables).map((table) => toldView(table).certificate?.rows);
  return counts.length === 0 || counts.includes(undefined)
    ? null
    : counts.reduce<number>((sum, rows) => sum + rows!, 0);
}

function rowsText(rows: number): string {
  return `${grouped(rows)} ${plural(rows, "row")}`;
}

/** Messages about a run's tables when nothing is wrong: zero rows when fetched, accepted tables always. */
function newsOf({ outcome }: RunReport): string[] {
  const { manifest, changed } = outcome!;
  return Object.entries(manifest.tables).flatMap(([name, table]) => {
    const accepted = acceptanceOf(table);
    if (!changed && accepted === null) return [];
    const note = [...(accepted === null ? [] : [table.state]), ...notesOf(table)].join("; ");
    return note === "" ? [] : [`  ${name}: ${visible(note)}\n`];
  });
}

function notesOf(table: TableManifest): string[] {
  const { state, certificate, drift } = toldView(table);
  const accepted = acceptanceOf(table);
  return [
    certificate !== null && certificate.quarantined > 0
      ? `${grouped(certificate.quarantined)} set aside`
      : "",
    drift.length > 0 ? `unknown: ${driftText(drift)}` : "",
    // rows set aside are already mentioned
    state === "QUARANTINED" ? "" : (attemptReason(table) ?? ""),
    shownText(table),
    accepted === null ? "" : acceptanceText(accepted),
    ...table.attempt.notes,
  ].filter((text) => text !== "");
}

/** The version that readers show of a table whose latest attempt failed. */
function shownText({ proven, attempt }: TableManifest): string {
  if (attempt.outcome === "ok") return "";
  if (proven === null) return "nothing proven is shown";
  const { rows = 0 } = proven.certificate ?? {};
  return `shown as proven before: ${provenText(proven)}, ${rowsText(rows)}; behind since ${attempt.behindSince}`;
}

function tablesText(manifest: Manifest, form: ReportForm): string {
  const lines = Object.entries(manifest.tables).map(([name, table]) => {
    const { state, certificate } = toldView(table);
    const counted =
      certificate === null
        ? ["", "", ""]
        : [
            grouped(certificate.rows),
            certificate.gatewayRows === null ? "" : grouped(BigInt(certificate.gatewayRows)),
            certificate.proof,
          ];
    return [name, state, ...counted, notesOf(table).join("; ")];
  });
  const columns = ["table", "state", "rows", "gateway", "proof"];
  return notedTable(columns, lines, [false, false, true, true, false], form);
}

/** One example of each table's rows set aside, and where all of them are. */
function asideLines({ outcome, setAside, quarantineDir }: RunReport): string[] {
  const examples = Object.entries(setAside).map(
    ([name, example]) =>
      `  ${visible(`set aside from ${name}, for example: ${example!.reason}: ${example!.row}`)}\n`,
  );
  const { tables } = outcome!.manifest;
  const isAny = Object.values(tables).some((table) => toldView(table).quarantine.length > 0);
  const where = `  rows set aside, each with its reason: ${visible(String(quarantineDir))}\n`;
  return isAny ? [...examples, where] : examples;
}

/** Hints for the failed tables, each hint once. */
function hintLines(manifest: Manifest): string[] {
  const hinted = Object.entries(manifest.tables).flatMap(([name, table]) => {
    const hint = acceptanceOf(table) === null ? attemptHint(table) : null;
    return hint === null ? [] : [{ name, hint }];
  });
  return [...Map.groupBy(hinted, ({ hint }) => hint)].map(
    ([hint, tables]) => `  hint for ${tables.map(({ name }) => name).join(", ")}: ${visible(hint)}\n`,
  );
}
