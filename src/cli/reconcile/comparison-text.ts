import type {
  AgainstReport,
  EquityDay,
  EquityReport,
  FillDelta,
  FillsReport,
  ListedFill,
} from "../../analytics/against/against-report.ts";
import { alignedTable } from "../../analytics/render/aligned-table.ts";
import { formatRun } from "../../model/run-argument.ts";
import { grouped, shortDecimal } from "../../model/text/number-text.ts";
import { countText } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import { wrapLines } from "../output/wrap-lines.ts";

const usualColumns = 100;
/** Most fills shown of each kind; `--json` has more. */
const mostShown = 5;

const words = {
  SAME: "the two agree",
  DIFFERS: "the two differ",
  "NOT COMPARED": "nothing differs, and not everything was compared",
} as const;

/**
 * A comparison of two runs for people: what is only in one, how the rest differs, and the sources of the difference in
 * equity.
 */
export function comparisonText({ against }: AgainstReport, columns: number | null): string {
  const { here, there, verdict, reasons, fills, equity, unpaired, notes } = against;
  const names = [here, there].map(({ instance, run }) => formatRun({ instanceId: instance, runId: run }));
  const width = Math.min(120, Math.max(80, columns ?? usualColumns));
  // a terminal cuts a wide table more readably than wrapping does
  const told = (text: readonly string[]) => text.map((line) => wrapLines(visible(line), width));
  const lines = [`${names.join(" against ")}  ${verdict}: ${words[verdict]}`];
  for (const reason of reasons) lines.push(`  not compared: ${reason}`);
  for (const note of notes) lines.push(`  note: ${note}`);
  for (const side of ["here", "there"] as const)
    for (const name of unpaired[side]) lines.push(`  only ${side}: ${name}`);
  const blocks = [told(lines)];
  if (fills !== null) blocks.push([...told(fillsLines(fills)), ...deltaLines(fills)]);
  for (const series of equity ?? []) blocks.push(["", ...told([seriesHead(series)]), ...dayLines(series)]);
  return `${blocks.flat().join("\n")}\n`;
}

function fillsLines(fills: FillsReport): string[] {
  const lines = [
    `  fills  ${grouped(fills.here)} here, ${grouped(fills.there)} there: ${grouped(fills.matched)} matched, ${grouped(fills.equal)} of them equal`,
    `         ${grouped(fills.onlyHere.count)} only here, ${grouped(fills.onlyThere.count)} only there, ${grouped(fills.beyond)} matched and further apart than allowed`,
  ];
  for (const [where, { count, first }] of [
    ["here", fills.onlyHere],
    ["there", fills.onlyThere],
  ] as const) {
    for (const fill of first.slice(0, mostShown)) lines.push(`    only ${where}: ${fillText(fill)}`);
    if (count > mostShown) lines.push(`    and ${countText(count - mostShown, "more fill")} only ${where}`);
  }
  for (const { here, there } of fills.firstBeyond.slice(0, mostShown)) {
    lines.push(`    here:  ${fillText(here)}`, `    there: ${fillText(there)}`);
  }
  if (fills.beyond > mostShown) lines.push(`    and ${countText(fills.beyond - mostShown, "more pair")}`);
  return lines;
}

function deltaLines({ deltas }: FillsReport): string[] {
  const different = deltas.filter((delta) => delta.different > 0);
  return different.length === 0 ? [] : ["", ...table(deltaColumns, different.map(deltaCells))];
}

function fillText({ seq, at, order, symbol, side, price, quantity, fee, feeCurrency }: ListedFill): string {
  return `${at}  ${side} ${quantity} ${symbol} at ${price}, fee ${fee} ${feeCurrency}, order ${order} (seq ${seq})`;
}

const deltaColumns = ["here less there", "differ", "min", "25 %", "median", "75 %", "max"];

function deltaCells({ what, of, unit, different, n, quantiles }: FillDelta): string[] {
  const { min, q25, median, q75, max } = quantiles;
  const shown = [min, q25, median, q75, max].map((text) => (what === "time" ? seconds(text) : text));
  const name = [what, of === unit ? "" : of, `(${what === "time" ? "s" : unit})`].filter(
    (part) => part !== "",
  );
  return [name.join(" "), `${grouped(different)} of ${grouped(n)}`, ...shown];
}

/** Nanoseconds as seconds; all digits stay. */
function seconds(text: string): string {
  const [, sign = "", whole = "0", fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  const digits = whole.padStart(10, "0");
  return `${sign}${digits.slice(0, -9)}.${digits.slice(-9)}${fraction}`.replace(/\.?0+$/, "");
}

function seriesHead({ currency, here, sessions, onlyHere, onlyThere, different }: EquityReport): string {
  const book = here.portfolio === "" ? here.account : `${here.account}/${here.portfolio}`;
  const apart = onlyHere + onlyThere === 0 ? "" : `; ${onlyHere} only here, ${onlyThere} only there`;
  return `  equity of ${book} in ${currency}: ${countText(sessions, "common session")}, ${grouped(different)} different${apart}`;
}

function dayLines({ last, largest, different }: EquityReport): string[] {
  if (last === null || largest === null || different === 0) return [];
  const days = last.day === largest.day ? [last] : [largest, last];
  const rows = partNames
    .filter(([name]) => days.some(({ parts }) => parts[name] !== "0"))
    .map(([name, text]) => [`  ${text}`, ...days.map(({ parts }) => parts[name])]);
  const cells = [
    ["equity here", ...days.map((day) => day.here)],
    ["equity there", ...days.map((day) => day.there)],
    ["difference", ...days.map((day) => day.difference)],
    ...rows,
  ];
  const title = (day: EquityDay) => (day === last ? `last, ${day.day}` : `largest, ${day.day}`);
  return table(["", ...days.map(title)], cells);
}

const partNames = [
  ["onlyHere", "fills only here"],
  ["onlyThere", "fills only there"],
  ["price", "prices of matched fills"],
  ["quantity", "quantities of matched fills"],
  ["fees", "fees of matched fills"],
  ["time", "matched fills on either side of the session's end"],
  ["marks", "marks"],
  ["transfers", "deposits and withdrawals"],
  ["events", "funding, interest and adjustments"],
  ["rest", "rest"],
] as const;

function table(columns: readonly string[], cells: readonly (readonly string[])[]): string[] {
  const right = columns.map((_, index) => index > 0);
  const short = cells.map((row) => row.map(shortDecimal));
  return alignedTable(columns, short, right)
    .trimEnd()
    .split("\n")
    .map((line) => `    ${line}`);
}
