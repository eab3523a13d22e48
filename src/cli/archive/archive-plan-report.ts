import type { RunPlan } from "../../extract/plan/plan-run.ts";
import type { RunvaultError } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { grouped } from "../../model/text/number-text.ts";
import { plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import type { ReportForm } from "../options/report-form.ts";
import { notedTable } from "../output/noted-table.ts";

/** A run's plan for --dry-run: one line, or a table if asked for or if a table cannot be planned. */
export function planText(plan: RunPlan, form: ReportForm): string {
  const { withTables, nameColumns } = form;
  const name = visible(formatRun(plan));
  const { upToDate, status, tables } = plan;
  if (upToDate) return `${name.padEnd(nameColumns)}  up to date\n`;
  if (!withTables && tables.every(({ error }) => error === null)) {
    return `${name.padEnd(nameColumns)}  status ${visible(status).padEnd(8)}  ${needText(plan)}\n`;
  }
  const rows = tables.map((table) => [
    table.table,
    table.absent ? "absent" : shown(table.slices, grouped),
    shown(table.rows, grouped),
    shown(table.textBytes, byteText),
    shown(table.diskBytes, byteText),
    table.error === null ? "" : `${table.error.code}: ${table.error.message}`,
  ]);
  const heads = ["table", "slices", "rows", "text", "disk"];
  return `${name}  status ${visible(status)}\n${notedTable(heads, rows, [false, true, true, true, true], form)}`;
}

function needText({ tables }: RunPlan): string {
  const sum = (of: "slices" | "rows" | "diskBytes") =>
    tables.reduce<number | null>(
      (all, table) => (all === null || table[of] === null ? null : all + table[of]),
      0,
    );
  const [slices, rows, disk] = [sum("slices"), sum("rows"), sum("diskBytes")];
  if (rows === null || disk === null) return "rows unknown";
  const inSlices = slices === null ? "" : ` in ${grouped(slices)} ${plural(slices, "slice")}`;
  return `${grouped(rows)} ${plural(rows, "row")}${inSlices}, about ${byteText(disk)}`;
}

function shown(value: number | null, text: (value: number) => string): string {
  return value === null ? "unknown" : text(value);
}

/** The same for a run that cannot be planned. */
export function failedPlanText(
  run: RunRef,
  { code }: RunvaultError,
  { paint, nameColumns }: ReportForm,
): string {
  return `${visible(formatRun(run)).padEnd(nameColumns)}  ${paint("failed")}: ${code}\n`;
}

/** The same as JSON; `toCopy` makes commands in hints work in this command's folders. */
export function planJson(plan: RunPlan, toCopy: (text: string) => string) {
  const tables = plan.tables.map(({ error, ...table }) => ({ ...table, error: errorJson(error, toCopy) }));
  return { ...plan, horizon: plan.horizon?.toString() ?? null, tables, error: null };
}

export function failedPlanJson(
  { instanceId, runId }: RunRef,
  error: RunvaultError,
  exit: number,
  toCopy: (text: string) => string,
) {
  return { instanceId, runId, exit, error: errorJson(error, toCopy) };
}

function errorJson(error: RunvaultError | null, toCopy: (text: string) => string) {
  if (error === null) return null;
  const { code, message, hint } = error;
  return { code, message, hint: hint === undefined ? null : toCopy(hint) };
}
