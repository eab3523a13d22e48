import type { Check, ReconciledRun, ReconcileReport } from "../../analytics/reconcile/reconcile-report.ts";
import { formatRun } from "../../model/run-argument.ts";
import { grouped, shortDecimal } from "../../model/text/number-text.ts";
import { countText, plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import { wrapLines } from "../output/wrap-lines.ts";

const usualColumns = 100;

/** A reconciliation for operators: a line per check, then the breaks with the rows to look at. */
export function reconcileText({ runs }: ReconcileReport, columns: number | null): string {
  const text = runs.map(runText).join("\n");
  return wrapLines(text, Math.min(120, Math.max(80, columns ?? usualColumns)));
}

const words = {
  HOLDS: "the books balance",
  BREAKS: "the books do not balance",
  "NOT CHECKED": "nothing breaks, and not everything was checked",
} as const;

function runText(run: ReconciledRun): string {
  const name = formatRun({ instanceId: run.instance, runId: run.run });
  const lines = [`${name}  ${run.verdict}: ${words[run.verdict]}`];
  if (run.unproven.length > 0) lines.push(`  NOT PROVEN, rows may be missing: ${run.unproven.join(", ")}`);
  for (const taken of run.instruments) lines.push(`  instrument ${taken}`);
  for (const check of run.checks) lines.push(checkLine(check));
  for (const { number, notes, breaks } of run.checks) {
    if (breaks === 0) for (const note of notes) lines.push(`  note on ${number}: ${note}`);
  }
  for (const check of run.checks.filter(({ breaks }) => breaks > 0)) lines.push("", ...breakLines(check));
  return `${lines.map(visible).join("\n")}\n`;
}

function checkLine({ number, name, verdict, rows, breaks, largest, reason }: Check): string {
  const head = `  ${number}  ${verdict.padEnd(11)}  ${name.padEnd(30)}`;
  const seen = `${grouped(rows)} ${plural(rows, "row")}`;
  if (breaks > 0) {
    return `${head}  ${seen}, ${grouped(breaks)} ${plural(breaks, "break")}${largest === null ? "" : `, up to ${shortDecimal(largest)}`}`;
  }
  return `${head}  ${seen}${reason === null ? "" : `; ${reason}`}`;
}

function breakLines({ number, name, formula, first, notes, reason }: Check): string[] {
  const lines = [`  Check ${number}, ${name}`, `    ${formula}`];
  for (const note of notes) lines.push(`    ${note}`);
  if (reason !== null) lines.push(`    not checked completely: ${reason}`);
  for (const { at, amount, unit, what, rows, moreRows } of first) {
    lines.push(
      `    ${at}  ${amount === null ? "" : `${shortDecimal(amount)} ${unit}: `.replace(" :", ":")}${what}`,
    );
    const named = rows.map(({ table, seq }) => `${table} ${seq}`).join(", ");
    const more = moreRows === 0 ? "" : ` and ${countText(moreRows, "more row")}`;
    if (rows.length > 0) lines.push(`      look at (table seq): ${named}${more}`);
  }
  return lines;
}
