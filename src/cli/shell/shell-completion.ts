import { viewColumns } from "../../analytics/query/view-columns.ts";
import { formats } from "../../analytics/render/format.ts";
import { commandNames } from "./shell-commands.ts";

const keywords =
  "ALL AND AS ASC ASOF BETWEEN BY CASE CAST COUNT DESC DESCRIBE DISTINCT ELSE END EXCLUDE EXISTS EXPLAIN FILTER FROM FULL GROUP HAVING ILIKE IN INNER INTERVAL IS JOIN LEFT LIKE LIMIT NOT NULL OFFSET ON OR ORDER OVER PARTITION QUALIFY REPLACE RIGHT SELECT SHOW SUM TABLES THEN UNION USING VALUES WHEN WHERE WINDOW WITH".split(
    " ",
  );

/** Completions of a line's last word, and that word, for readline. `before` is the statement before this line. */
export function completed(line: string, before: string): [string[], string] {
  const command = /^\s*([.\\]\S*)(?:\s+(.*))?$/.exec(before.trim() === "" ? line : "");
  if (command !== null) {
    const [, name = "", argument] = command;
    if (argument === undefined) return [starting(commandNames, name), name];
    if (/^(\.schema|\\d)$/.test(name)) return [starting([...viewColumns.keys()], argument), argument];
    if (name === ".format") return [starting(formats, argument), argument];
    if (/^(\.timing|\\timing)$/.test(name)) return [starting(["on", "off"], argument), argument];
    return [[], argument];
  }
  const [, table, word = ""] = /(?:([A-Za-z_]\w*)\.)?([A-Za-z_]\w*|)$/.exec(line) ?? [];
  if (table !== undefined) {
    return [starting(viewColumns.get(table.toLowerCase()) ?? allColumns(), word), word];
  }
  if (/\b(?:from|join|describe)\s+\w*$/i.test(before + line)) {
    return [starting([...viewColumns.keys()], word), word];
  }
  if (word === "") return [[], ""];
  // columns of the statement's tables, or of all if it names none yet
  const named = [...viewColumns].filter(([name]) => new RegExp(`\\b${name}\\b`, "i").test(before + line));
  const columns = named.length === 0 ? allColumns() : named.flatMap(([, own]) => own);
  const known = word === word.toLowerCase() ? keywords.map((keyword) => keyword.toLowerCase()) : keywords;
  return [starting([...viewColumns.keys(), ...columns, ...known], word), word];
}

function allColumns(): string[] {
  return [...viewColumns.values()].flat();
}

function starting(names: readonly string[], word: string): string[] {
  return [...new Set(names.filter((name) => name.startsWith(word)))].sort();
}
