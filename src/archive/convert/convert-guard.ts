import {
  canonicalDoubleSql,
  escapedStringSql,
  joinLiterals,
  quotedInJson,
} from "../../duckdb/canonical-sql.ts";
import { columnType, wholeType } from "../../duckdb/column-type.ts";
import { identifier, literal } from "../../duckdb/sql.ts";
import { exactType, holds } from "../../model/profile/exact-types.ts";
import type { Column } from "../../model/profile/table.ts";
import { timestampMax, timestampMin } from "../../model/time.ts";
import { type LineRules, valueGrammar } from "../../row/strict-line.ts";
import { beginsSql } from "./convert-extra.ts";
import type { Shape } from "./convert-segments.ts";

/**
 * The SQL side of the guard. The relation it works on has `line`, the text of a line without `extra`, `j`, a struct of
 * VARCHAR with the fields that DuckDB's JSON reader found in it, `n`, a struct of its whole numbers as such, and
 * `file`.
 */

/** The struct of VARCHAR that json_transform reads a line into, as the JSON text it wants. */
export function transformStructure(columns: readonly Column[]): string {
  return JSON.stringify(Object.fromEntries(columns.map(({ name }) => [name, "VARCHAR"])));
}

/** The struct of a line's whole numbers, cast once for all uses. `TRY_CAST` where a cast may not raise. */
export function wholeNumbersSql(columns: readonly Column[], cast: "CAST" | "TRY_CAST"): string {
  const fields = columns.flatMap((column) => {
    const type = wholeType(column);
    return type === undefined
      ? []
      : [`${identifier(column.name)} := ${cast}(${field(column.name)} AS ${type})`];
  });
  return `struct_pack(${fields.join(", ")})`;
}

/**
 * SQL that is true if the row can be stored exactly. It may be NULL, so compare with IS TRUE.
 *
 * The first test compares the line with itself rendered again from the parsed values. It costs a copy of the line, and
 * proves at once that no key is missing, unknown or duplicated, that every token is of its kind, that whole numbers are
 * printed as such, that the row belongs to the run, and that the parser changed nothing: an escape or a bare number
 * would make the rendered line differ. Lines that a shape describes are compared with that shape's grammar instead, and
 * lines of `checkedFiles` with none; for these two, whole numbers and ids are tested separately. Grammar and range of
 * the values come next, so that no cast rounds. `idsSql` gives a line's ids if lines of several runs are read at once;
 * all of them must be canonical then.
 */
export function guardSql(
  rules: LineRules,
  shapes: readonly Shape[],
  checkedFiles: readonly string[] = [],
  idsSql: IdsSql = literalIds(rules),
): string {
  if (rules.extra && isReadBehindHead(rules, shapes, checkedFiles)) return allOf(rules, beginsSql);
  const forms = shapes.map((shape) => `regexp_full_match(line, ${literal(shapePattern(shape))})`);
  if (checkedFiles.length > 0) forms.push(`file IN (${checkedFiles.map(literal).join(", ")})`);
  let form = `line = ${renderedSql(rules, idsSql)}`;
  if (forms.length > 0)
    form = `CASE WHEN ${form} THEN true WHEN ${forms.join(" OR ")} THEN ${identitySql(rules)} AND ${wholeGrammarSql(rules)} ELSE false END`;
  return allOf(rules, form);
}

function allOf(rules: LineRules, form: string): string {
  return [form, decimalsSql(rules), ...rules.table.columns.flatMap(rangeSql)]
    .map((test) => `(${test})`)
    .join(" AND ");
}

/**
 * Whether `extra` is read after the canonical line, in a relation of `behindHeadSql`: if no other form passes. The sign
 * of a zero is searched in a line, in which no other field of that name may occur.
 */
export function isReadBehindHead(
  { table }: Pick<LineRules, "table">,
  shapes: readonly Shape[],
  checkedFiles: readonly string[],
): boolean {
  const hasDoubles = table.columns.some(({ kind }) => kind === "double");
  return shapes.length === 0 && checkedFiles.length === 0 && !hasDoubles;
}

/** The canonical line expected of a row, up to its closing brace. */
export function headSql(rules: LineRules, ids: IdsSql = literalIds(rules)): string {
  return renderedSql(rules, ids, "");
}

/** SQL for the ids of a line's run, as they appear inside quotes in JSON. */
export interface IdsSql {
  readonly runId: string;
  readonly instanceId: string;
}

/** An id as it appears inside quotes in JSON. */
export function idInJson(id: string): string {
  return JSON.stringify(id).slice(1, -1);
}

function literalIds({ runId, instanceId }: LineRules): IdsSql {
  return { runId: literal(idInJson(runId)), instanceId: literal(idInJson(instanceId)) };
}

function identitySql({ runId, instanceId }: LineRules): string {
  return `${field("run_id")} = ${literal(runId)} AND ${field("instance_id")} = ${literal(instanceId)}`;
}

function wholeGrammarSql({ table }: LineRules): string {
  return grammarSql(
    table.columns.flatMap((column) =>
      wholeType(column) === undefined
        ? []
        : [{ column, pattern: column.kind.startsWith("uint") ? valueGrammar.uint : valueGrammar.int }],
    ),
  );
}

function decimalsSql({ table, exactTypes, oddZeros = false }: LineRules): string {
  return grammarSql(
    table.columns.flatMap((column) =>
      column.kind === "exact"
        ? [{ column, pattern: `(?:${fittingDecimal(column, exactTypes, oddZeros)})?` }]
        : [],
    ),
  );
}

/**
 * The grammar of several columns at once: one pattern over their values joined by commas, which no value can contain.
 * One pattern a column takes longer.
 */
function grammarSql(columns: readonly { column: Column; pattern: string }[]): string {
  if (columns.length === 0) return "true";
  const values = columns.map(({ column }) => field(column.name)).join(", ',', ");
  return `regexp_full_match(concat(${values}), ${literal(columns.map(({ pattern }) => pattern).join(","))})`;
}

/**
 * SQL for the value of a column in its Parquet type. Raises an error if it does not fit; the guard checks the grammar.
 */
export function typedSql(column: Column, rules: LineRules, shapes: readonly Shape[]): string {
  const text = field(column.name);
  const type = columnType(column, rules.exactTypes);
  switch (column.kind) {
    case "exact":
      return decimalSql(text, type, exactType(rules.exactTypes, column.name).precision);
    case "timestamp":
      return `make_timestamp_ns(${wholeNumber(column)})`;
    case "double": {
      // the JSON reader turns the token -0 into 0, so the sign of a zero is read from the line itself
      const keys = new Set([JSON.stringify(column.name), ...rawKeys(column, shapes)]);
      const negative = `(?:${[...keys].map(quotePattern).join("|")})[ \\t\\r]*:[ \\t\\r]*-`;
      return `CASE WHEN CAST(${text} AS DOUBLE) = 0 AND regexp_matches(line, ${literal(negative)}) THEN CAST('-0.0' AS DOUBLE) ELSE CAST(${text} AS DOUBLE) END`;
    }
    case "string":
      return text;
    default:
      return wholeNumber(column);
  }
}

/**
 * SQL for the decimal in a text, NULL for the empty text. DuckDB takes eighty times as long to read a text into a type
 * of more than 18 digits. Nearly every value fits 18, so those are read through a smaller type that holds them exactly.
 */
function decimalSql(text: string, type: string, precision: number): string {
  const whole = `CAST(nullif(${text}, '') AS ${type})`;
  if (precision <= 18) return whole;
  const smaller = [9, 12].flatMap((scale) => {
    const small = `DECIMAL(18,${scale})`;
    if (!holds(type, small)) return [];
    const fits = literal(`-?[0-9]{1,${18 - scale}}(?:\\.[0-9]{1,${scale}})?`);
    // DuckDB may compute a branch for rows that take another one, so the cast of the text must not raise
    return [`WHEN regexp_full_match(${text}, ${fits}) THEN CAST(TRY_CAST(${text} AS ${small}) AS ${type})`];
  });
  return smaller.length === 0 ? whole : `CASE ${smaller.join(" ")} ELSE ${whole} END`;
}

/**
 * SQL that is true if every cast would succeed, over whole numbers from `TRY_CAST`; finds the row that raised the
 * error.
 */
export function fitsSql(rules: LineRules): string {
  const tests = rules.table.columns.flatMap((column) => {
    const text = field(column.name);
    switch (column.kind) {
      case "string":
        // no cast can fail
        return [];
      case "timestamp":
        return [timestampRange(column)];
      case "exact":
        return [`(${text} = '' OR TRY_CAST(${text} AS ${columnType(column, rules.exactTypes)}) IS NOT NULL)`];
      case "double":
        return [`TRY_CAST(${text} AS DOUBLE) IS NOT NULL`];
      default:
        return [`${wholeNumber(column)} IS NOT NULL`];
    }
  });
  return tests.join(" AND ");
}

/** The ends of int64 mean infinity and "no date" to DuckDB, which accepts some of them silently. */
function timestampRange(column: Column): string {
  return `${wholeNumber(column)} BETWEEN ${timestampMin} AND ${timestampMax}`;
}

function wholeNumber({ name }: Column): string {
  return `n.${identifier(name)}`;
}

function field(name: string): string {
  return `j.${identifier(name)}`;
}

/**
 * The canonical line made of whole numbers and of the other values as text. Only free text is escaped: an escape
 * elsewhere takes the slower form.
 */
function renderedSql({ table }: LineRules, ids: IdsSql, end: "}" | "" = "}"): string {
  const known = new Map([
    ["run_id", ids.runId],
    ["instance_id", ids.instanceId],
  ]);
  const parts = table.columns.flatMap((column, index) => {
    const quote = quotedInJson(column) ? '"' : "";
    const key = literal(`${index === 0 ? "{" : ","}${JSON.stringify(column.name)}:${quote}`);
    const id = known.get(column.name);
    if (id !== undefined) return [key, id, literal('"')];
    return [key, renderedValueSql(column), literal(quote)];
  });
  return `concat(${joinLiterals([...parts, literal(end)]).join(", ")})`;
}

function renderedValueSql(column: Column): string {
  const text = field(column.name);
  if (column.kind === "double") {
    // as a string, "1.5" would render as the number it is not, so the words are the only strings that pass
    const double = `CAST(${text} AS DOUBLE)`;
    return `CASE WHEN ${double} = 0 AND contains(line, ${literal(`${JSON.stringify(column.name)}:-0`)}) THEN '-0' ELSE ${canonicalDoubleSql(double)} END`;
  }
  if (wholeType(column) !== undefined) return wholeNumber(column);
  return column.freeText ? escapedStringSql(text) : text;
}

function rangeSql(column: Column): string[] {
  const text = field(column.name);
  switch (column.kind) {
    case "timestamp":
      return [timestampRange(column)];
    case "double":
      // a number too large for a double reads as infinity
      return [`isfinite(CAST(${text} AS DOUBLE)) OR ${text} IN ('NaN', 'Infinity', '-Infinity')`];
    default:
      return [];
  }
}

/**
 * Decimals that the column holds without rounding: trailing zeros are not digits of the value. No odd zeros: no sign on
 * a zero, and no zero before another digit.
 */
function fittingDecimal(column: Column, exactTypes: LineRules["exactTypes"], oddZeros: boolean): string {
  const { precision, scale } = exactType(exactTypes, column.name);
  const whole = precision - scale;
  const fraction = `(?:\\.${scale === 0 ? "" : `[0-9]{1,${scale}}`}0${scale === 0 ? "+" : "*"})?`;
  if (oddZeros) return `-?${whole === 0 ? "0+" : `0*[0-9]{1,${whole}}`}${fraction}`;
  const small = scale === 0 ? [] : [`-0\\.[0-9]{0,${scale - 1}}[1-9]0*`];
  const large = whole === 0 ? [] : [`-?[1-9][0-9]{0,${whole - 1}}${fraction}`];
  return [...large, `0${fraction}`, ...small].join("|");
}

function shapePattern(shape: Shape): string {
  const blank = "[ \\t\\r]*";
  const members = shape.map(
    ({ rawKey, column }) => `${quotePattern(rawKey)}${blank}:${blank}${tokenPattern(column)}`,
  );
  return `${blank}\\{${blank}${members.join(`${blank},${blank}`)}${blank}\\}${blank}`;
}

/** Kinds of token only: the value guard checks the contents of strings. */
function tokenPattern(column: Column | undefined): string {
  const string = '"(?:[^"\\\\\\x00-\\x1f]|\\\\.)*"';
  switch (column?.kind) {
    case undefined:
      return `(?:${string}|${valueGrammar.number}|true|false|null)`;
    case "uint32":
      return valueGrammar.uint;
    case "double":
      return `(?:${valueGrammar.number}|"${valueGrammar.specialDouble}")`;
    default:
      return string;
  }
}

function rawKeys(column: Column, shapes: readonly Shape[]): string[] {
  return shapes.flatMap((shape) =>
    shape.filter((member) => member.column === column).map(({ rawKey }) => rawKey),
  );
}

function quotePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}
