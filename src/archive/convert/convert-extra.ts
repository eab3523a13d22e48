import { identifier, literal } from "../../duckdb/sql.ts";
import { extraName } from "../../model/profile/extra-column.ts";
import { extraKey } from "../../row/extra-member.ts";
import type { LineRules } from "../../row/strict-line.ts";

/**
 * The SQL side of `extra`, the member at a line's end. The guard compares what stands ahead of it with the line rendered anew,
 * so that no pattern has to be held against all of a line; of `extra` itself nothing is read but whether it is an object.
 */

/** The text in `text` where it is an object of strict JSON; NULL otherwise. */
function objectSql(text: string): string {
  return `CASE WHEN ${text} IS NOT NULL AND json_valid(${text}) AND NOT regexp_matches(${text}, ${literal(lenient)}) THEN ${text} END`;
}

/**
 * A relation of `line`, with the columns `beside`, as one of `line` without `extra`, these, and `extra`: NULL where a line has none.
 * What looks like the member, and is no object, stays in the line, which then is no line that the guard knows.
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
 * The same where only canonical lines are to pass, in half the time: the relation has the canonical line as it has to be up to its
 * closing brace as `head`, and `line` stays whole. `beginsSql` says whether a line is that, with `extra` or without.
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
 * What DuckDB's reader takes for JSON, and others do not: bare NaN and infinities, and a comma behind the last value. A text that
 * has such a thing inside of a string is only read more slowly for it.
 */
const lenient = "[:,\\[][ \\t\\r]*(?:-?[NnIi][AaNn]|[}\\]])";
