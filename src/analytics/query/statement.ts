import type { DuckDBConnection } from "@duckdb/node-api";
import { StatementType } from "@duckdb/node-api";
import { literal } from "../../duckdb/sql.ts";
import { sqlParts } from "../../duckdb/sql-parts.ts";
import { RunvaultError } from "../../model/error.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { doublesOf } from "../double-view-name.ts";
import { isMacroName, type MacroName, macroNames } from "../sql/macro-names.ts";
import { type TradeTableName, tradeTableNames } from "../trades/trade-tables.ts";

/** One statement that only reads. `text` stands on its own: no trailing semicolon, safe inside parentheses. It
 * begins where the text given does, so that DuckDB counts the same lines. */
export interface ReadStatement {
  readonly kind: "select" | "explain";
  readonly text: string;
  /** The tables whose rows it may need, including those behind views with doubles. */
  readonly tables: readonly TableName[];
  /** The tables made of fills that it reads. */
  readonly tradeTables: readonly TradeTableName[];
  /** The analytics' macros that it calls. */
  readonly macros: readonly MacroName[];
}

/**
 * Table functions that a query may call. DuckDB has others that act from inside a SELECT: enable_logging opens files,
 * checkpoint writes, json_execute_serialized_sql and query run unchecked SQL. Everything not listed is refused, so that
 * a new release opens no hole.
 */
const tableFunctions: ReadonlySet<string> = new Set([
  "duckdb_columns",
  "duckdb_functions",
  "duckdb_keywords",
  "duckdb_tables",
  "duckdb_types",
  "duckdb_views",
  "generate_series",
  "histogram",
  "histogram_values",
  "json_each",
  "json_tree",
  "pragma_table_info",
  "pragma_version",
  "range",
  "repeat",
  "repeat_row",
  "summary",
  "unnest",
]);

/** Functions with side effects; no query needs them. */
const refusedFunctions: ReadonlySet<string> = new Set(["write_log", "nextval", "currval"]);

/**
 * The one SELECT, or EXPLAIN of one, that the text holds. Nothing is run or bound: only the parser sees the text.
 * Throws `query_invalid` with DuckDB's own message on anything else.
 */
export async function readStatement(connection: DuckDBConnection, sql: string): Promise<ReadStatement> {
  const explain = /^(?:\s|--.*\n|\/\*[\s\S]*?\*\/)*explain(?:\s+analyze)?(?=[\s(])/i.exec(sql);
  if (explain !== null) {
    const blank = blanked(explain[0]);
    const { text, ...named } = await readSelect(connection, blank + sql.slice(blank.length));
    return { kind: "explain", text: explain[0] + text.slice(blank.length), ...named };
  }
  return { kind: "select", ...(await readSelect(connection, sql)) };
}

/** Spaces instead of a text, so that lines and columns after it stay the same. */
function blanked(text: string): string {
  return text.replace(/[^\n]/g, " ");
}

async function readSelect(connection: DuckDBConnection, sql: string): Promise<Omit<ReadStatement, "kind">> {
  const tree = await parse(connection, sql);
  const statements = await count(connection, sql);
  if (statements !== 1) {
    throw new RunvaultError(
      "query_invalid",
      `the query must be one statement, but this text has ${statements}`,
      {
        hint,
      },
    );
  }
  const macros = new Set<MacroName>();
  refuseActing(tree, macros);
  return {
    text: await withoutEnd(connection, sql, tree),
    tables: tablesIn(tree),
    tradeTables: tradeTablesIn(tree),
    macros: [...macros],
  };
}

/** The text of the one statement without semicolons around it. */
async function withoutEnd(connection: DuckDBConnection, sql: string, tree: unknown): Promise<string> {
  // empty statements before it, which are replaced by spaces
  let ahead = 0;
  let hasBegun = false;
  for (const { index, kind } of sqlParts(sql)) {
    if (kind === "other") hasBegun = true;
    if (kind !== "semicolon") continue;
    if (!hasBegun) {
      ahead = index + 1;
      continue;
    }
    // the text must fit inside parentheses; the part cut off is proven not to belong to the statement
    const text = blanked(sql.slice(0, ahead)) + sql.slice(ahead, index);
    if (await fitsParentheses(connection, text, tree)) return text.trimEnd();
    break;
  }
  return blanked(sql.slice(0, ahead)) + sql.slice(ahead).trimEnd();
}

/**
 * The archive's tables among the names in a statement. A name that a WITH defines counts too, though it is not a table.
 */
function tablesIn(tree: unknown): TableName[] {
  const named = new Set<string>();
  const look = (node: unknown) => {
    if (typeof node !== "object" || node === null) return;
    for (const [key, value] of Object.entries(node)) {
      if (key === "table_name" && typeof value === "string") named.add(value.toLowerCase());
      else look(value);
    }
  };
  look(tree);
  return tableNames.filter((name) => named.has(name) || named.has(doublesOf(name)));
}

/**
 * The tables made of fills that a statement reads. Inside a WITH, a name that it defines is not one of these, so a
 * statement with its own `positions` computes nothing; inside its own definition it still is, as for DuckDB.
 */
function tradeTablesIn(tree: unknown): TradeTableName[] {
  const named = new Set<string>();
  const look = (node: unknown, defined: ReadonlySet<string>): void => {
    if (typeof node !== "object" || node === null) return;
    const { table_name: table, schema_name: schema, cte_map: ctes } = node as Record<string, unknown>;
    if (typeof table === "string") {
      const name = table.toLowerCase();
      if (typeof schema === "string" && schema !== "") named.add(name);
      else if (!defined.has(name)) named.add(name);
    }
    let within = defined;
    for (const { key, value } of (ctes as { map?: readonly Definition[] } | undefined)?.map ?? []) {
      look(value, within);
      within = new Set([...within, key.toLowerCase()]);
    }
    for (const [key, value] of Object.entries(node)) if (key !== "cte_map") look(value, within);
  };
  look(tree, new Set());
  return tradeTableNames.filter((name) => named.has(name));
}

/** A WITH definition in the parser's tree. */
interface Definition {
  readonly key: string;
  readonly value: unknown;
}

/** Whether the text parses inside parentheses, and by itself to the same tree: then nothing of the statement is lost. */
async function fitsParentheses(connection: DuckDBConnection, sql: string, tree: unknown): Promise<boolean> {
  const wrapped = await parseTree(connection, `SELECT * FROM (\n${sql}\n)`);
  if (wrapped.error) return false;
  const alone = await parseTree(connection, sql);
  return !alone.error && JSON.stringify(alone.statements) === JSON.stringify(tree);
}

/** The parser's tree of a SELECT. Throws `query_invalid` if the text is not one. */
async function parse(connection: DuckDBConnection, sql: string): Promise<unknown> {
  if (sql.trim() === "") throw new RunvaultError("query_invalid", "the query is empty", { hint });
  const answer = await parseTree(connection, sql);
  if (!answer.error) {
    if (answer.statements?.length === 0)
      throw new RunvaultError("query_invalid", "the query is empty", { hint });
    return answer.statements;
  }
  if (answer.error_type === "parser") {
    const at = answer.position === undefined ? "" : `\n\n${excerpt(sql, Number(answer.position))}`;
    throw new RunvaultError("query_invalid", `Parser Error: ${answer.error_message}${at}`, { hint });
  }
  throw new RunvaultError("query_invalid", "only a SELECT or an EXPLAIN of one can be run", {
    // such a PIVOT first creates a type of the values it finds
    hint: /\bpivot\b/i.test(sql) ? "List the values of the PIVOT: PIVOT … ON column IN (…)." : hint,
  });
}

/** The line of a place in the text, in the form of DuckDB's errors about names and values. */
function excerpt(sql: string, bytes: number): string {
  const before = Buffer.from(sql).subarray(0, bytes).toString().split("\n");
  const column = before.at(-1)!.length;
  const line = sql.split("\n")[before.length - 1] ?? "";
  const from = Math.max(0, column - 40);
  const shown = `LINE ${before.length}: ${from > 0 ? "..." : ""}`;
  const caret = " ".repeat(shown.length + column - from);
  return `${shown}${line.slice(from, from + 80).replaceAll("\t", " ")}\n${caret}^`;
}

interface ParseAnswer {
  readonly error: boolean;
  readonly error_type?: string;
  readonly error_message?: string;
  /** Bytes before the place, in digits. */
  readonly position?: string;
  readonly statements?: readonly unknown[];
}

async function parseTree(connection: DuckDBConnection, sql: string): Promise<ParseAnswer> {
  if (sql.includes("\0"))
    return { error: true, error_type: "parser", error_message: "the text contains a zero byte" };
  const result = await connection.run(`SELECT json_serialize_sql(${literal(sql)})`);
  const text = String((await result.getRows())[0]?.[0]);
  try {
    return JSON.parse(text) as ParseAnswer;
  } catch (cause) {
    // DuckDB prints a constant that overflows to infinity as a bare word, which is not JSON
    throw new RunvaultError("query_invalid", "the query has a number too large for a double", {
      cause,
      hint: "Write infinity as 'Infinity'::DOUBLE.",
    });
  }
}

const hint = "Write one SELECT over the tables, such as: SELECT symbol, count(*) FROM fills GROUP BY symbol.";

async function count(connection: DuckDBConnection, sql: string): Promise<number> {
  try {
    return (await connection.extractStatements(sql)).count;
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new RunvaultError("query_invalid", message.replace(/^Failed to extract statements: /, ""), {
      cause,
      hint,
    });
  }
}

/** Throws `query_invalid` if a statement calls anything with side effects. Adds the macros that it calls. */
function refuseActing(node: unknown, macros: Set<MacroName>): void {
  if (Array.isArray(node)) {
    for (const part of node) refuseActing(part, macros);
    return;
  }
  if (typeof node !== "object" || node === null) return;
  const part = node as Record<string, unknown>;
  if (part.type === "TABLE_FUNCTION") {
    const name = String(
      (part.function as { function_name?: unknown } | undefined)?.function_name,
    ).toLowerCase();
    if (isMacroName(name)) macros.add(name);
    else if (!tableFunctions.has(name)) {
      const near = nearestName(name, [...tableFunctions, ...Object.keys(macroNames)]);
      throw new RunvaultError("query_invalid", `the table function ${name} cannot be used in a query`, {
        hint: `${near === null ? "" : `Did you mean ${near}? `}Read the archive's tables; \`SHOW TABLES\` lists them.`,
      });
    }
  }
  const name = part.function_name;
  if (typeof name === "string" && refusedFunctions.has(name.toLowerCase())) {
    throw new RunvaultError("query_invalid", `the function ${name} cannot be used in a query`);
  }
  for (const value of Object.values(part)) refuseActing(value, macros);
}

/** Whether a prepared statement is of the kind that was read: the last check before it runs. */
export function isKind(type: StatementType, kind: ReadStatement["kind"]): boolean {
  return type === (kind === "select" ? StatementType.SELECT : StatementType.EXPLAIN);
}
