import { isDeepStrictEqual } from "node:util";
import type { ColumnSource, RowMap } from "../../model/profile/row-map.ts";
import type { TableName } from "../../model/profile/table.ts";
import { pathText } from "./field-path-schema.ts";
import type { Profile } from "./profile.ts";

/** Defaults of a profile. */
const usual = { numbers: "text", fields: "keep", ties: "bytes" } as const;
const settings = Object.keys(usual) as (keyof typeof usual)[];

/** How rows are read, in the form of a profile's file, with settings common to all tables under `rows`. */
export function rowsDocument({ described, maps }: Pick<Profile, "described" | "maps">): {
  readonly rows: Record<string, unknown>;
  readonly tables: Readonly<Partial<Record<TableName, Record<string, unknown>>>>;
} {
  const mapped = described.flatMap((name) => {
    const map = maps[name];
    return map === undefined ? [] : [[name, map] as const];
  });
  if (mapped.length === 0) return { rows: { canonical: true }, tables: {} };
  // settings under `rows` would also apply to tables whose rows are canonical
  const isEvery = mapped.length === described.length;
  const common = isEvery ? commonOf(mapped.map(([, map]) => map)) : { settings: {}, columns: new Map() };
  const { columns } = common;
  return {
    rows: {
      ...common.settings,
      ...(columns.size === 0 ? {} : { columns: documentOf([...columns]) }),
    },
    tables: {
      ...(isEvery ? {} : Object.fromEntries(described.map((name) => [name, { canonical: true }]))),
      ...Object.fromEntries(mapped.map(([name, map]) => [name, tableDocument(map, common)])),
    },
  };
}

interface Common {
  readonly settings: Readonly<Record<string, string>>;
  readonly columns: ReadonlyMap<string, ColumnSource>;
}

function commonOf(maps: readonly RowMap[]): Common {
  const [first] = maps;
  const same = settings.filter(
    (key) => first![key] !== usual[key] && maps.every((map) => map[key] === first![key]),
  );
  const columns = new Map<string, ColumnSource>();
  // a single table has its columns under its own key
  for (const name of new Set(maps.length < 2 ? [] : maps.flatMap((map) => Object.keys(map.columns)))) {
    const having = maps.filter((map) => map.columns[name] !== undefined);
    const source = having[0]!.columns[name]!;
    const isCommon = having.every(
      (map) => isDeepStrictEqual(map.columns[name], source) && !saysItself(name, map),
    );
    if (isCommon) columns.set(name, source);
  }
  return { settings: Object.fromEntries(same.map((key) => [key, first![key]])), columns };
}

function tableDocument(map: RowMap, common: Common): Record<string, unknown> {
  const columns = Object.entries(map.columns).filter(
    ([name]) => !saysItself(name, map) && !common.columns.has(name),
  );
  const own = settings.filter((key) => map[key] !== (common.settings[key] ?? usual[key]));
  return {
    ...Object.fromEntries(own.map((key) => [key, map[key]])),
    ...(columns.length === 0 ? {} : { columns: documentOf(columns) }),
    ...(map.dropped.length === 0
      ? {}
      : { dropped: map.dropped.map((path) => ({ from: pathText(path), lossy: true })) }),
  };
}

/** Whether a column needs no entry: it comes from the field with its name, which no other column uses. */
function saysItself(name: string, map: RowMap): boolean {
  const own: ColumnSource = { kind: "field", path: [name] };
  return (
    isDeepStrictEqual(map.columns[name], own) &&
    Object.entries(map.columns).every(
      ([other, source]) =>
        other === name || source.kind !== "field" || !isDeepStrictEqual(source.path, own.path),
    )
  );
}

function documentOf(columns: readonly (readonly [string, ColumnSource])[]): Record<string, unknown> {
  return Object.fromEntries(columns.map(([name, source]) => [name, columnDocument(source)]));
}

function columnDocument(source: ColumnSource): unknown {
  if (source.kind === "constant") return { value: source.text };
  if (source.kind !== "field") return source.kind;
  const { path, unit, words, optional, lossy } = source;
  const from = pathText(path);
  const more = {
    ...(unit === undefined ? {} : { unit }),
    ...(words === undefined ? {} : { words: new Map(words.map(({ wire, column }) => [wire, column])) }),
    ...(optional === undefined ? {} : { optional }),
    ...(lossy === undefined ? {} : { lossy }),
  };
  const isWord = typeof from === "string" && ["run", "instance", "absent", "derived"].includes(from);
  return Object.keys(more).length === 0 && !isWord ? from : { from, ...more };
}
