import type { Figure } from "../../analytics/figure.ts";
import type {
  MetricsDocument,
  MetricsRun,
  MetricsSection,
} from "../../analytics/metrics/metrics-document.ts";
import { alignedTable } from "../../analytics/render/aligned-table.ts";
import { figureLabel, figureText, noValue } from "../../analytics/render/figure-text.ts";
import { formatRun } from "../../model/run-argument.ts";
import { visible } from "../../model/text/visible-text.ts";
import { wrapped } from "../output/wrap-lines.ts";

type Group = MetricsSection["groups"][number];

/** One column of a table: a run, or one account, portfolio and currency of it. */
interface Column {
  readonly name: string;
  readonly group: Group;
}

/** The figures of runs in sections, a column per run, in lines of `width` characters if names allow it. */
export function metricsText(document: MetricsDocument, width: number): string {
  const { runs } = document;
  const names = runNames(runs);
  const parts = [headText(runs, names, width)];
  for (const [index, section] of (runs[0]?.sections ?? []).entries()) {
    const own = runs.map((run, at) => ({ section: run.sections[index]!, name: names[at]! }));
    parts.push(sectionText(section, own, width));
  }
  return parts.join("\n");
}

/** A single run needs no name above its column; several get numbers, explained at the top. */
function runNames(runs: readonly MetricsRun[]): readonly string[] {
  return runs.length === 1 ? [""] : runs.map((_, index) => `[${index + 1}]`);
}

function headText(runs: readonly MetricsRun[], names: readonly string[], width: number): string {
  const lines = runs.flatMap((run, index) => {
    const id = visible(formatRun({ instanceId: run.instance, runId: run.run }));
    const until = run.until === null ? "" : `, still running: figures until ${run.until}`;
    const warning =
      run.unproven.length === 0 ? [] : [`    NOT PROVEN, rows may be missing: ${run.unproven.join(", ")}`];
    const refused =
      run.refused.length === 0 ? [] : [`    sections are missing, not proven: ${run.refused.join(", ")}`];
    return [`${[names[index], id].join(" ").trim()}  ${run.state}${until}`, ...warning, ...refused];
  });
  return lines
    .flatMap((line) => wrapped(line, width))
    .map((line) => `${line}\n`)
    .join("");
}

function sectionText(
  { title, conventions }: MetricsSection,
  own: readonly { readonly section: MetricsSection; readonly name: string }[],
  width: number,
): string {
  const columns = own.flatMap(({ section, name }) => columnsOf(section, name, own.length > 1));
  const heading = wrapped(visible(`${title}: ${conventions}`), width).map((line) => `${line}\n`);
  const body: string[] = [];
  for (const { section, name } of own) {
    const said = [...(section.absent === null ? [] : [section.absent]), ...section.notes];
    for (const text of said) body.push(noteText(name, text, width));
  }
  const figures = rowsOf(columns, (group) =>
    Object.entries(group.figures).map(([name, figure]) => ({ name, label: figureLabel(name), figure })),
  );
  body.push(...tables("", figures, columns, width));
  const kinds = [...new Set(columns.flatMap(({ group }) => group.parts.map(({ by }) => by)))];
  for (const by of kinds) body.push(partsText(by, columns, width));
  if (body.join("") === "") body.push("  nothing to tell\n");
  return [...heading, ...body].join("");
}

function columnsOf(section: MetricsSection, name: string, isNamed: boolean): readonly Column[] {
  return section.groups.map((group) => {
    const { account, portfolio, currency } = group;
    const key = section.groups.length === 1 ? [] : [[account, portfolio, currency].filter(Boolean).join("/")];
    const shown = [...(isNamed ? [name] : []), ...key].join(" ");
    return { name: shown === "" ? currency : shown, group };
  });
}

interface Row {
  readonly name: string;
  readonly label: string;
  readonly figures: readonly (Figure | null)[];
}

/** A row for each figure in any column, in the order of the first column that has it. */
function rowsOf(
  columns: readonly Column[],
  figuresOf: (
    group: Group,
  ) => readonly { readonly name: string; readonly label: string; readonly figure: Figure }[],
): readonly Row[] {
  const all = columns.map(({ group }) => new Map(figuresOf(group).map((one) => [one.label, one])));
  const labels = new Map(all.flatMap((one) => [...one.values()].map(({ label, name }) => [label, name])));
  return [...labels].map(([label, name]) => ({
    name,
    label,
    figures: all.map((one) => one.get(label)?.figure ?? null),
  }));
}

/** Tables within `width`, with further tables for columns that do not fit, and reasons for missing values below. */
function tables(
  first: string,
  rows: readonly Row[],
  columns: readonly Column[],
  width: number,
): readonly string[] {
  if (rows.length === 0) return [];
  const asked = rows.filter(({ figures }) => !figures.every((figure) => isUnasked(figure)));
  if (asked.length < rows.length) {
    const others = rows.filter((row) => !asked.includes(row));
    return [...tables(first, asked, columns, width), reasonsText(others, columns, width)];
  }
  const cells = rows.map((row) =>
    row.figures.map((figure) => (figure === null ? "" : figureText(row.name, figure))),
  );
  const heads = [first, ...columns.map(({ name }) => name)];
  const lines = rows.map(({ label }, row) => [label, ...cells[row]!]);
  return [...alignedWithin(heads, lines, width), reasonsText(rows, columns, width)];
}

/**
 * Aligned columns beside the first one; those that do not fit stand below, beside the first one again. Labels beside which
 * not even one column fits are broken at blanks.
 */
function alignedWithin(
  heads: readonly string[],
  lines: readonly (readonly string[])[],
  width: number,
): readonly string[] {
  const widths = heads.map(
    (head, at) => Math.max(visible(head).length, ...lines.map((line) => visible(line[at]!).length)) + 2,
  );
  const texts: string[] = [];
  for (let from = 1; from < heads.length; ) {
    let to = from + 1;
    let used = widths[0]! + widths[from]!;
    while (to < heads.length && used + widths[to]! <= width) used += widths[to++]!;
    const part = (line: readonly string[]) => [line[0]!, ...line.slice(from, to)];
    const own = lines.map(part);
    texts.push(
      indented(
        alignedTable(
          part(heads),
          used <= width ? own : own.flatMap((line) => brokenLabel(line, width - 2 - widths[from]!)),
          part(heads).map((_, at) => at > 0),
        ),
      ),
    );
    from = to;
  }
  return texts;
}

/** A row whose label has at most so many characters a line, as far as its words allow. */
function brokenLabel(
  [label = "", ...cells]: readonly string[],
  room: number,
): readonly (readonly string[])[] {
  const [first = "", ...more] = wrapped(visible(label), room, room - 2);
  return [[first, ...cells], ...more.map((part) => [`  ${part}`, ...cells.map(() => "")])];
}

/** Whether there is no figure for want of an option: it needs no row. */
function isUnasked(figure: Figure | null): boolean {
  return figure !== null && figure.value === null && figure.reason === "no benchmark";
}

/** Why values are missing, a line per reason. */
function reasonsText(rows: readonly Row[], columns: readonly Column[], width: number): string {
  const byReason = new Map<string, Map<string, string[]>>();
  for (const { label, figures } of rows) {
    for (const [at, figure] of figures.entries()) {
      if (figure === null || figure.value !== null) continue;
      const labels = byReason.get(figure.reason) ?? new Map<string, string[]>();
      labels.set(label, [...(labels.get(label) ?? []), columns[at]!.name]);
      byReason.set(figure.reason, labels);
    }
  }
  return [...byReason]
    .map(([reason, labels]) => {
      const which = [...labels].map(([label, names]) =>
        columns.length === 1 || names.length === columns.length ? label : `${label} ${names.join(" ")}`,
      );
      return noteText("", `${noValue} (${reason}): ${which.join("; ")}`, width);
    })
    .join("");
}

/**
 * The parts of one column in full. For several columns one figure is compared, a row per part and a column per run,
 * except for drawdowns, which share nothing but their rank.
 */
function partsText(by: string, columns: readonly Column[], width: number): string {
  const partsOf = (group: Group) => group.parts.filter((part) => part.by === by);
  const names = Object.keys(columns.flatMap(({ group }) => partsOf(group))[0]?.figures ?? {});
  const compared = names.length === 1 ? names[0] : names.find((name) => name === "net_pnl");
  if (compared !== undefined && (columns.length > 1 || names.length === 1)) {
    const rows = rowsOf(columns, (group) =>
      partsOf(group).map(({ key, figures }) => ({ name: compared, label: key, figure: figures[compared]! })),
    );
    const first = names.length === 1 ? by : `${partLabel(compared)} by ${by}`;
    const isTime = by === "month" || by === "hour";
    const sorted = isTime ? [...rows].sort((a, b) => (a.label < b.label ? -1 : 1)) : rows;
    return `\n${tables(first, sorted, columns, width).join("")}`;
  }
  return columns
    .map(({ name, group }) => {
      const parts = partsOf(group);
      if (parts.length === 0) return "";
      const words = by.replaceAll("_", " ");
      const heads = [columns.length === 1 ? words : `${words} ${name}`, ...names.map(partLabel)];
      const isEmpty = parts.every(({ figures }) => names.every((one) => figures[one]!.value === null));
      // a table without any value becomes just the reasons
      if (isEmpty) return `\n  ${visible(heads[0]!)}\n${partReasons(parts, width)}`;
      const lines = parts.map(({ key, figures }) => [
        key,
        ...names.map((one) => figureText(one, figures[one]!)),
      ]);
      const table = alignedWithin(heads, lines, width).join("");
      return `\n${table}${partReasons(parts, width)}`;
    })
    .join("");
}

/** Why parts have no value, a line per reason. */
function partReasons(parts: Group["parts"], width: number): string {
  const byReason = new Map<string, Set<string>>();
  for (const [name, figure] of parts.flatMap(({ figures }) => Object.entries(figures))) {
    if (figure.value !== null) continue;
    byReason.set(figure.reason, (byReason.get(figure.reason) ?? new Set()).add(partLabel(name)));
  }
  return [...byReason]
    .map(([reason, labels]) => noteText("", `${noValue} (${reason}): ${[...labels].join("; ")}`, width))
    .join("");
}

/** Trades of a part are closed ones; the section's heading says so. */
function partLabel(name: string): string {
  return name === "net_pnl" ? "Net P&L" : figureLabel(name);
}

function noteText(name: string, text: string, width: number): string {
  const [first = "", ...rest] = wrapped(visible([name, text].join(" ").trim()), width - 2, width - 4);
  return [`  ${first}\n`, ...rest.map((line) => `    ${line}\n`)].join("");
}

function indented(text: string): string {
  return text.replace(/^(?=.)/gm, "  ");
}
