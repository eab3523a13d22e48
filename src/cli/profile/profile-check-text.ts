import { alignedTable } from "../../analytics/render/aligned-table.ts";
import {
  allFindings,
  type DocumentCheck,
  type Finding,
  type ProfileCheck,
  type TableCheck,
} from "../../gateway/profile/check/profile-check.ts";
import { formatRun } from "../../model/run-argument.ts";
import { countText } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import type { GlobalValues } from "../options/global-values.ts";
import { cutMiddle } from "../output/fit-line.ts";
import type { Painter } from "../output/painter.ts";
import { wrapLines } from "../output/wrap-lines.ts";

interface Form extends Pick<GlobalValues, "quiet"> {
  readonly paint: Painter;
  /** Characters a line; null for lines of any length. */
  readonly columns: number | null;
}

/** A profile check for people: the gateway's answers, table by table, and then all findings. */
export function profileCheckText(check: ProfileCheck, form: Form): string {
  const findings = allFindings(check);
  const blocks = form.quiet
    ? []
    : [
        headText(check, form),
        documentsText(check.documents, form),
        ...check.tables.map((table) => tableText(table, form)),
        restText(check, form),
      ];
  blocks.push(findingsText(check, findings, form));
  return blocks.filter((block) => block !== "").join("\n");
}

function headText({ profile, file, gateway, run }: ProfileCheck, { columns }: Form): string {
  const where = run === null ? "" : `, run ${formatRun(run)}`;
  return wrapLines(`${visible(`profile ${profile} (${file}) at ${gateway}${where}`)}\n`, columns);
}

function documentsText(documents: readonly DocumentCheck[], form: Form): string {
  if (documents.length === 0) return "";
  const lines = documents.map(({ document, request, findings, read, ...answer }) => {
    const said = read.flatMap(([name, value]) => (value === "" ? [] : `${name} ${value}`)).join("; ");
    return markedLine(
      findings.length === 0 ? "ok" : "wrong",
      `${document}: ${request}: ${answerText(answer)}${said === "" ? "" : `; ${said}`}`,
      form,
    );
  });
  return `documents\n${lines.join("")}`;
}

function answerText({
  status,
  mediaType,
  holds,
}: Pick<TableCheck, "status" | "mediaType" | "holds">): string {
  return [status === null ? "no answer" : `${status}`, mediaType ?? "", holds]
    .filter((part) => part !== "")
    .join(", ");
}

function tableText(table: TableCheck, form: Form): string {
  const { columns, unused, heeds, proof, findings, run } = table;
  const isWrong = findings.length > 0;
  const parts = [
    `${table.table}, run ${visible(formatRun(run))}: ${form.paint(isWrong ? "wrong" : "ok")}\n`,
    `${wrapLines(`  ${visible(table.request)}: ${visible(answerText(table))}\n`, form.columns)}`,
  ];
  if (columns.length > 0) parts.push("\n", columnsText(columns, form));
  if (unused.length > 0) {
    parts.push("\n  fields that no column takes\n");
    for (const { field, raw, nearest } of unused) {
      const near = nearest === null ? "" : `; nearest column: ${nearest}`;
      parts.push(wrapLines(`    ${visible(`${field}: ${raw}${near}`)}\n`, form.columns));
    }
  }
  if (heeds.length > 0) parts.push("\n");
  for (const { what, result, told } of heeds) parts.push(markedLine(result, `${what}: ${told}`, form));
  parts.push("\n", wrapLines(`  proof: ${visible(`${proof.reach}: ${proof.why}`)}\n`, form.columns));
  return parts.join("");
}

/** Most characters of a value if lines may be long. */
const longestValue = 40;

function columnsText(columns: TableCheck["columns"], form: Form): string {
  const names = ["column", "from", "in the answer", "in the archive"];
  const cells = columns.map(({ column, from, raw, canonical, empty }) => [
    column,
    from,
    raw ?? "",
    canonical ?? (raw === null && empty ? "(empty in every row)" : ""),
  ]);
  const shown = form.columns === null ? cells : fitted(names, cells, form.columns - 2);
  const table = alignedTable(names, shown, [false, false, false, false]);
  return table.replace(/^(?=.)/gm, "  ");
}

/** Cuts values so that a line fits, as far as possible on a narrow terminal. */
function fitted(names: readonly string[], cells: readonly (readonly string[])[], width: number): string[][] {
  const widest = (at: number) => Math.max(names[at]!.length, ...cells.map((row) => row[at]!.length));
  const room = Math.max(24, width - widest(0) - widest(1) - 6);
  const most = Math.min(longestValue, Math.max(12, Math.floor(room / 2)));
  return cells.map(([column = "", from = "", ...values]) => [
    column,
    from,
    ...values.map((value) => cutMiddle(visible(value), most)),
  ]);
}

/** Texts after the marks start at the same column. */
const markWidth = "not checked".length;

function markedLine(mark: string, text: string, { paint, columns }: Form): string {
  const shown = wrapLines(visible(text), columns === null ? null : Math.max(20, columns - markWidth - 4));
  const indent = " ".repeat(markWidth + 4);
  return `  ${paint(mark.padEnd(markWidth))}  ${shown.replaceAll("\n", `\n${indent}`)}\n`;
}

function restText({ none, notDescribed }: ProfileCheck, { columns }: Form): string {
  const lines = [
    ...(none.length === 0 ? [] : [`the gateway has no history of ${none.join(", ")}: they count as ABSENT`]),
    ...(notDescribed.length === 0
      ? []
      : [`not in the profile, so never requested: ${notDescribed.join(", ")}`]),
  ];
  return lines.map((line) => wrapLines(`${line}\n`, columns)).join("");
}

function findingsText(
  { file, requests }: ProfileCheck,
  findings: readonly Finding[],
  { columns, paint }: Form,
): string {
  if (findings.length === 0) {
    return `${visible(file)}: ${paint("ok")}, ${countText(requests, "request")}\n`;
  }
  const told = findings.map(({ key, message, hint }) =>
    wrapLines(`${visible(`${key}: ${message}`)}\n  hint: ${visible(hint)}\n`, columns),
  );
  return `${told.join("")}${visible(file)}: ${countText(findings.length, "finding")}, ${countText(requests, "request")}\n`;
}
