import { identifier, literal } from "../../duckdb/sql.ts";
import { extraName } from "../../model/profile/extra-column.ts";
import { extraKey } from "../../row/extra-member.ts";
import type { LineRules } from "../../row/strict-line.ts";

/**
 * The SQL side of `extra`, the member at a line's end. The guard compares the rest of the line with the line rendered
 * again, so no pattern has to match a whole line. Of `extra` itself it checks only that it is an object.
 */

/** The value of `text` if it is an object of strict JSON; NULL otherwise. */
function objectSql(text: string): string {
  return `CASE WHEN ${text} IS NOT NULL AND json_valid(${text}) AND NOT regexp_matches(${text}, ${literal(lenient)}) THEN ${text} END`;
}

/**
 * A relation of `line`, with the columns `beside`, as one of `line` without `extra`, these, and `extra`: NULL where a
 * line has none. A member of that name that is not an object stays in the line, and the guard then rejects the line.
 */
export function splitExtraSql(relation: string, beside: string): string {
  const opening = literal(`${extraKey}{`);
  // strpos and substring count characters, each in the same way
  const found = `SELECT line, ${beside}, strpos(line, ${opening}) AS extra_at FROM ${relation}`;
  const text = `CASE WHEN extra_at > 0 AND suffix(line, '}}') THEN left(substring(line, extra_at + ${extraKey.length}), -1) END`;
  const cut = `SELECT line, ${beside}, extra_at, ${text} AS extra_text FROM (${found})`;
  const kept = `SELECT line, ${beside}, extra_at, ${objectSql("extra_text")} AS extra FROM (${cut})`;
  return `(SELECT CASE WHEN extra IS NULL THEN line ELSE left(line, extra_at - 1) || '}' END AS line, ${beside}, extra FROM (${kept}))`;
}

/**
 * The same for canonical lines only, in half the time: `head` holds the expected canonical line up to its closing
 * brace, and `line` stays whole. `beginsSql` says whether a line is that, with `extra` or without.
 */
export function behindHeadSql(relation: string): string {
  const rest = `SELECT *, CASE WHEN starts_with(line, head) THEN substring(line, length(head) + 1) END AS rest FROM ${relation}`;
  const opens = `starts_with(rest, ${literal(`${extraKey}{`)}) AND suffix(rest, '}}')`;
  const text = `CASE WHEN ${opens} THEN left(substring(rest, ${extraKey.length + 1}), -1) END`;
  const cut = `SELECT * EXCLUDE (head), ${text} AS extra_text FROM (${rest})`;
  return `(SELECT * EXCLUDE (extra_text), ${objectSql("extra_text")} AS extra FROM (${cut}))`;
}

export const beginsSql = "(extra IS NOT NULL OR rest = '}')";

/** The line as it stands in the segment, of one that was split. */
export const wholeLineSql = `coalesce(CASE WHEN extra IS NULL THEN line ELSE left(line, -1) || ${literal(extraKey)} || extra || '}' END, '')`;

/** The value of the Parquet column. */
export function extraValueSql({ extra = false }: Pick<LineRules, "extra">): string {
  return `CAST(${extra ? "extra" : "NULL"} AS VARCHAR) AS ${identifier(extraName)}`;
}

/**
 * What DuckDB's reader accepts as JSON and others do not: bare NaN and infinities, and a comma after the last value. A
 * text that has one of these inside a string is only read more slowly.
 */
const lenient = "[:,\\[][ \\t\\r]*(?:-?[NnIi][AaNn]|[}\\]])";
