import { RunvaultError } from "../../../model/error.ts";
import type { RowMap } from "../../../model/profile/row-map.ts";
import type { Column, Table } from "../../../model/profile/table.ts";
import type { RunRef } from "../../../model/source.ts";
import { columnText, emptyText, takesNull, type ValueRules } from "./column-text.ts";
import { exactDecimal } from "./exact-decimal.ts";
import { type ForeignValue, NotARow } from "./foreign-json.ts";

/** A map in the form needed to read rows. */
export interface RowPlan {
  readonly table: Table;
  readonly freezes: boolean;
  readonly root: PathNode;
  /** In canonical order. */
  readonly columns: readonly PlannedColumn[];
  /** Fields that columns use, by number. */
  readonly leaves: readonly Leaf[];
}

/** An object in the row that contains fields of columns, or dropped fields. */
export interface PathNode {
  readonly path: readonly string[];
  readonly entries: ReadonlyMap<string, PathEntry>;
}

export type PathEntry =
  | { readonly kind: "leaf"; readonly leaf: number }
  | { readonly kind: "node"; readonly node: PathNode }
  | { readonly kind: "dropped" };

export interface Leaf {
  readonly path: readonly string[];
  /** Numbers of the columns that use it. */
  readonly columns: readonly number[];
}

export type PlannedColumn = FieldColumn | FixedColumn;

/** A column with the same text in every row. */
export interface FixedColumn {
  readonly kind: "fixed";
  readonly column: Column;
  /** As in a canonical line, with quotes. */
  readonly text: string;
}

export interface FieldColumn extends ValueRules {
  readonly kind: "field";
  readonly path: readonly string[];
  readonly leaf: number;
  readonly optional: boolean;
  /** Whether `null` is the empty value. */
  readonly takesNull: boolean;
  /** The empty value as a canonical line has it. */
  readonly empty: string;
  readonly words: readonly PlannedWord[] | undefined;
}

export interface PlannedWord {
  readonly wire: string | number | boolean;
  /** The `wordKey` of wire values that mean this word. */
  readonly key: string;
  /** As in a canonical line, with quotes. */
  readonly text: string;
}

/** Throws `invalid_argument` for an invalid map; loading a profile reports the same earlier, with lines. */
export function planRows(table: Table, map: RowMap, run: RunRef): RowPlan {
  const root = new GrowingNode([]);
  const leaves: { path: readonly string[]; columns: number[] }[] = [];
  const leafAt = (path: readonly string[], column: number): number => {
    const leaf = root.leafAt(table, path, () => {
      leaves.push({ path, columns: [] });
      return leaves.length - 1;
    });
    leaves[leaf]!.columns.push(column);
    return leaf;
  };
  const columns = table.columns.map((column, index) =>
    planColumn(table, map, run, column, (path) => leafAt(path, index)),
  );
  for (const path of map.dropped) root.drop(table, path);
  return { table, freezes: map.fields === "freeze", root, columns, leaves };
}

function planColumn(
  table: Table,
  map: RowMap,
  run: RunRef,
  column: Column,
  leafAt: (path: readonly string[]) => number,
): PlannedColumn {
  const source = map.columns[column.name] ?? { kind: "field", path: [column.name] };
  switch (source.kind) {
    case "field": {
      const optional = source.optional === true;
      return {
        kind: "field",
        column,
        unit: source.unit ?? "ns",
        bareNumbers: map.numbers === "exact",
        path: source.path,
        leaf: leafAt(source.path),
        optional,
        takesNull: optional || takesNull(column),
        empty: emptyText(column),
        words: source.words?.map(({ wire, column: word }) => ({
          wire,
          key: wordKey(wireValue(wire))!,
          text: fixedText(table, column, word),
        })),
      };
    }
    case "run":
      return { kind: "fixed", column, text: JSON.stringify(run.runId) };
    case "instance":
      return { kind: "fixed", column, text: JSON.stringify(run.instanceId) };
    case "absent":
      return { kind: "fixed", column, text: emptyText(column) };
    case "derived":
      return { kind: "fixed", column, text: '""' };
    case "constant":
      return { kind: "fixed", column, text: fixedText(table, column, source.text) };
  }
}

/** A field's path, for messages. */
export function shownPath(path: readonly string[]): string {
  return path.map((name) => (/^[^\s."]+$/.test(name) ? name : JSON.stringify(name))).join(".");
}

/** A column, for messages, with its field if that has another name. */
export function shownPlace({ column: { name }, path }: FieldColumn): string {
  const field = shownPath(path);
  return field === name ? name : `${name} (${field})`;
}

/**
 * The key for looking up a value among words: strings by text, numbers by value regardless of spelling. Undefined for
 * values that cannot be words.
 */
export function wordKey(value: ForeignValue): string | undefined {
  switch (value.kind) {
    case "string":
      return `s${value.text}`;
    case "number": {
      const text = exactDecimal(value.text);
      return typeof text === "string" ? `n${text}` : undefined;
    }
    case "word":
      return value.text === "true" || value.text === "false" ? `w${value.text}` : undefined;
    default:
      return undefined;
  }
}

/** A word's value as the gateway sends it. */
export function wireValue(wire: string | number | boolean): ForeignValue {
  if (typeof wire === "string") return { kind: "string", text: wire };
  return { kind: typeof wire === "number" ? "number" : "word", text: String(wire) };
}

/** A value in a column's own notation: numbers as text, times in nanoseconds. */
function fixedText(table: Table, column: Column, text: string): string {
  try {
    return columnText({ column, unit: "ns", bareNumbers: false }, { kind: "string", text });
  } catch (thrown) {
    if (!(thrown instanceof NotARow)) throw thrown;
    throw new RunvaultError("invalid_argument", `${table.name}.${column.name}: ${thrown.message}`);
  }
}

class GrowingNode implements PathNode {
  readonly path: readonly string[];
  readonly entries = new Map<string, PathEntry>();

  constructor(path: readonly string[]) {
    this.path = path;
  }

  /** The number of the leaf at a path below this node, created if new. */
  leafAt(table: Table, path: readonly string[], add: () => number): number {
    const node = this.#nodeAt(table, path);
    const name = path.at(-1)!;
    const held = node.entries.get(name);
    if (held?.kind === "leaf") return held.leaf;
    if (held !== undefined) throw twoUses(table, path);
    const leaf = add();
    node.entries.set(name, { kind: "leaf", leaf });
    return leaf;
  }

  drop(table: Table, path: readonly string[]): void {
    const node = this.#nodeAt(table, path);
    const name = path.at(-1)!;
    const held = node.entries.get(name);
    if (held?.kind === "dropped") return;
    if (held !== undefined) throw twoUses(table, path);
    node.entries.set(name, { kind: "dropped" });
  }

  #nodeAt(table: Table, path: readonly string[]): GrowingNode {
    let node: GrowingNode = this;
    for (const name of path.slice(0, -1)) {
      const held = node.entries.get(name);
      if (held !== undefined && held.kind !== "node") throw twoUses(table, [...node.path, name]);
      const next = held === undefined ? new GrowingNode([...node.path, name]) : (held.node as GrowingNode);
      if (held === undefined) node.entries.set(name, { kind: "node", node: next });
      node = next;
    }
    return node;
  }
}

function twoUses(table: Table, path: readonly string[]): RunvaultError {
  return new RunvaultError(
    "invalid_argument",
    `${table.name}: the field ${shownPath(path)} is used in two ways: as a value, as an object around values, or as dropped`,
  );
}
