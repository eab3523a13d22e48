import type { ColumnSource, RowMap } from "../../model/profile/row-map.ts";
import type { Table } from "../../model/profile/table.ts";
import { type KeyPath, keyText, nodeAt } from "../../model/yaml/tree.ts";
import type { ColumnSpec } from "./column-schema.ts";
import type { CompileContext } from "./compile-context.ts";
import type { ProfileFile, TableFile } from "./profile-schema.ts";

type RowSettings = NonNullable<ProfileFile["rows"]>;

/** A column of a table, and where the profile defines it; `null` if only its name does. */
interface PlacedColumn {
  readonly name: string;
  readonly at: KeyPath | null;
  readonly source: ColumnSource;
}

/**
 * How a table's rows are made canonical; undefined if the profile says that they already are. Reports what could not be
 * undone: a path into a value that another column uses whole, or a field that two columns use although only one names
 * it.
 */
export function compileRowMap(
  table: Table,
  file: TableFile,
  rows: RowSettings | undefined,
  isLines: boolean,
  context: CompileContext,
): RowMap | undefined {
  const at: KeyPath = ["tables", table.name];
  const isCanonical = (file.canonical ?? rows?.canonical) === true && isLines;
  if (isCanonical && !saysRows(file) && !saysRows(rows)) return undefined;
  const columns = table.columns.map(({ name }): PlacedColumn => {
    const own = file.columns?.[name];
    if (own !== undefined) return placed(name, [...at, "columns", name], own, context);
    const every = rows?.columns?.[name];
    if (every !== undefined) return placed(name, ["rows", "columns", name], every, context);
    return { name, at: null, source: { kind: "field", path: [name] } };
  });
  const dropped = [
    ...(rows?.dropped ?? []).map(({ from }, index) => ({
      path: from,
      at: ["rows", "dropped", index] as KeyPath,
    })),
    ...(file.dropped ?? []).map(({ from }, index) => ({
      path: from,
      at: [...at, "dropped", index] as KeyPath,
    })),
  ];
  refuseShared(table, columns, context);
  refuseInside(table, columns, dropped, context);
  const map: RowMap = {
    numbers: file.numbers ?? rows?.numbers ?? "text",
    fields: file.fields ?? rows?.fields ?? "keep",
    ties: file.ties ?? rows?.ties ?? "bytes",
    columns: Object.fromEntries(columns.map(({ name, source }) => [name, source])),
    dropped: dropped.map(({ path }) => [...path]),
  };
  if (file.ties === "arrival" && map.columns.seq?.kind !== "derived") {
    context.fault([...at, "ties"], "is only for rows with `seq: derived`", "Remove it.");
  }
  return map;
}

function saysRows(settings: TableFile | RowSettings | undefined): boolean {
  if (settings === undefined) return false;
  const { numbers, fields, ties, dropped, columns } = settings;
  return [numbers, fields, ties, dropped, columns].some((said) => said !== undefined);
}

function placed(name: string, at: KeyPath, spec: ColumnSpec, context: CompileContext): PlacedColumn {
  if (spec.kind === "constant") return { name, at, source: { kind: "constant", text: spec.text } };
  if (spec.kind !== "field") return { name, at, source: { kind: spec.kind } };
  const { path, unit, words, optional, lossy } = spec;
  return {
    name,
    at,
    source: {
      kind: "field",
      path: [...path],
      ...(unit === undefined ? {} : { unit }),
      ...(words === undefined
        ? {}
        : { words: words.map(([key, column]) => ({ wire: wireOf(key, at, context), column })) }),
      ...(optional ? { optional: true } : {}),
      ...(lossy ? { lossy: true } : {}),
    },
  };
}

/** A word as the gateway sends it: an unquoted key may be a number, true or false. */
function wireOf(key: string, at: KeyPath, context: CompileContext): string | number | boolean {
  const words = nodeAt(context.tree, [...at, "words"]);
  const entry = words?.kind === "map" ? words.entries.get(key) : undefined;
  if (entry?.isQuoted === true) return key;
  if (key === "true" || key === "false") return key === "true";
  if (key === "null" || key === "~" || key === "") {
    context.fault(
      [...at, "words", key],
      "is empty, and an empty value is not a word",
      'Remove it, or write "null" in quotes if it is text.',
    );
    return key;
  }
  if (!/^[-+]?\.?\d/.test(key) || !Number.isFinite(Number(key))) return key;
  if (String(Number(key)) === key) return Number(key);
  context.fault(
    [...at, "words", key],
    "is not written as a plain number",
    `Write ${Number(key)}, or put it in quotes if it is text.`,
  );
  return key;
}

/** A field belongs to one column unless several columns name it. */
function refuseShared(table: Table, columns: readonly PlacedColumn[], context: CompileContext): void {
  const takers = new Map<string, PlacedColumn>();
  for (const column of columns) {
    if (column.at !== null && column.source.kind === "field") takers.set(idOf(column.source.path), column);
  }
  for (const { name, at } of columns) {
    const taker = at === null ? takers.get(idOf([name])) : undefined;
    if (taker === undefined) continue;
    context.fault(
      taker.at!,
      `uses the field ${name}, which the column ${name} of ${table.name} uses by default`,
      `Add an entry for ${name}: \`${name}: ${name}\` if both use the field, another field, or absent.`,
    );
  }
}

/** A value cannot be used both whole and in part: the row could not be restored from its columns. */
function refuseInside(
  table: Table,
  columns: readonly PlacedColumn[],
  dropped: readonly { readonly path: readonly string[]; readonly at: KeyPath }[],
  context: CompileContext,
): void {
  const taken = [
    ...columns.flatMap(({ name, at, source }) =>
      source.kind === "field" ? [{ what: name, at, path: source.path, isDropped: false }] : [],
    ),
    ...dropped.map(({ path, at }) => ({ what: keyText(at), at, path, isDropped: true })),
  ];
  for (const whole of taken) {
    for (const part of taken) {
      if (whole === part) continue;
      const isInside =
        part.path.length > whole.path.length && whole.path.every((name, index) => part.path[index] === name);
      const isSame = whole.isDropped && idOf(whole.path) === idOf(part.path);
      if (!isInside && !isSame) continue;
      if (whole.at === null && part.at !== null) {
        context.fault(
          part.at,
          `uses ${shown(part.path)}, but by default the column ${whole.what} of ${table.name} uses all of ${shown(whole.path)}`,
          `Add an entry for ${whole.what}: another field, or absent.`,
        );
      } else if (whole.at !== null) {
        context.fault(
          whole.at,
          isSame
            ? `drops ${shown(whole.path)}, which ${part.what} uses`
            : `uses all of ${shown(whole.path)}, but ${part.what} uses ${shown(part.path)} inside it`,
          isSame ? "Remove one of the two." : "Name a field inside it.",
        );
      }
    }
  }
}

function idOf(path: readonly string[]): string {
  return JSON.stringify(path);
}

function shown(path: readonly string[]): string {
  return path.join(".");
}
