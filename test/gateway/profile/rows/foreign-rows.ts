import fc from "fast-check";
import type { ColumnSource, RowMap, TimeUnit } from "../../../../src/model/profile/row-map.ts";
import { type Column, type ColumnKind, type Table, tableNamed } from "../../../../src/model/profile/table.ts";

/**
 * Rows of a foreign gateway made from what they mean: each with the text on the wire, in any spelling, and the canonical
 * line that has to come of it, worked out with BigInt and without a look at how `src/` does it.
 */
export interface ForeignRow {
  readonly wire: string;
  readonly line: string;
  /** What it has to become on the way back: numbers in canonical spelling, without what is empty and optional. */
  readonly back: string;
}

export interface ForeignTable {
  readonly map: RowMap;
  readonly rows: readonly ForeignRow[];
}

export const run = { runId: 'run "1"', instanceId: "desk" };

const column = (name: string, kind: ColumnKind): Column => ({
  name,
  kind,
  scalar: kind,
  freeText: false,
  exactType: kind === "exact" ? "DECIMAL(18,9)" : undefined,
});

/** A table with every kind of column, some of them twice. */
export const table: Table = {
  ...tableNamed("fills"),
  columns: [
    column("run_id", "string"),
    column("seq", "uint64"),
    column("ts_event", "timestamp"),
    column("ts_init", "timestamp"),
    column("symbol", "string"),
    column("side", "string"),
    column("maker", "string"),
    column("price", "exact"),
    column("quantity", "exact"),
    column("net", "int64"),
    column("level", "uint32"),
    column("value", "double"),
    column("window", "string"),
  ],
};

/** What one column has in one row: its text on the wire, in the line, and going back; `wire` undefined is no field. */
interface Cell {
  readonly wire: string | undefined;
  readonly line: string;
  readonly back: string | undefined;
}

const digitsOf = (value: bigint) => (value < 0n ? -value : value).toString();

/** `value` times ten to the minus `scale`, in canonical spelling. */
export function plainDecimal(value: bigint, scale: number): string {
  let rest = value;
  let places = scale;
  while (places > 0 && rest % 10n === 0n) {
    rest /= 10n;
    places--;
  }
  if (places < 0) return plainDecimal(rest * 10n ** BigInt(-places), 0);
  const digits = digitsOf(rest).padStart(places + 1, "0");
  const whole = digits.slice(0, digits.length - places);
  return `${rest < 0n ? "-" : ""}${whole}${places === 0 ? "" : `.${digits.slice(-places)}`}`;
}

/** The same number in other spellings, as JSON numbers. */
function spelled(value: bigint, scale: number): fc.Arbitrary<string> {
  const plain = plainDecimal(value, scale);
  const sign = value < 0n ? "-" : "";
  const exponents = fc
    .tuple(fc.integer({ min: 0, max: 8 }), fc.constantFrom("e", "E"), fc.boolean())
    .map(([moved, letter, plus]) => {
      // moved places to the left, and as many more in the exponent
      const digits = plainDecimal(value < 0n ? -value : value, scale + moved);
      return `${sign}${digits}${letter}${plus ? "+" : ""}${moved}`;
    });
  const down = fc
    .integer({ min: 1, max: 8 })
    .map((moved) => `${sign}${plainDecimal(value < 0n ? -value : value, scale - moved)}e-${moved}`);
  const zeros = fc
    .integer({ min: 1, max: 4 })
    .map((count) => `${plain}${plain.includes(".") ? "" : "."}${"0".repeat(count)}`);
  return fc.oneof({ weight: 4, arbitrary: fc.constant(plain) }, exponents, down, zeros);
}

/** A number bare, or as text, where zeros may stand ahead. */
function bareOrText(value: bigint, scale: number, bare: boolean): fc.Arbitrary<string> {
  const number = spelled(value, scale);
  const text = fc
    .tuple(number, fc.constantFrom("", "0", "00"))
    .map(([digits, zeros]) => `"${digits.replace(/^-?/, (sign) => sign + zeros)}"`);
  return bare ? fc.oneof(number, text) : text;
}

/** A text in any spelling that JSON has for it. */
export function spelledText(text: string): fc.Arbitrary<string> {
  return fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 8 }).map((choices) => {
    let spelledSoFar = "";
    for (let at = 0; at < text.length; at++) {
      const unit = text[at]!;
      const plain = JSON.stringify(unit).slice(1, -1);
      const hex = text.charCodeAt(at).toString(16).padStart(4, "0");
      const choice = choices[at % choices.length]!;
      const next = text.charCodeAt(at + 1);
      // half of a pair in an escape needs the other half in one
      if (/[\ud800-\udfff]/.test(unit)) {
        spelledSoFar += choice === 0 ? `\\u${hex}\\u${next.toString(16)}` : text.slice(at, at + 2);
        at++;
      } else if (choice === 0) spelledSoFar += `\\u${hex}`;
      else if (choice === 1) spelledSoFar += `\\u${hex.toUpperCase()}`;
      else spelledSoFar += unit === "/" && choice === 2 ? "\\/" : plain;
    }
    return `"${spelledSoFar}"`;
  });
}

const texts = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.string({
    unit: fc.constantFrom("\u0000", "\u001f", "\n", '"', "\\", "/", "é", "𝄞", "\u2028", "\u007f", "a"),
  }),
);

const empties: Record<ColumnKind, string> = {
  string: '""',
  exact: '""',
  double: '"NaN"',
  uint32: "0",
  uint64: '"0"',
  int64: '"0"',
  timestamp: '"0"',
};

function textCell(): fc.Arbitrary<Cell> {
  return texts.chain((text) =>
    spelledText(text).map((wire) => ({ wire, line: JSON.stringify(text), back: JSON.stringify(text) })),
  );
}

function wordCell(words: readonly { wire: string | number | boolean; column: string }[]): fc.Arbitrary<Cell> {
  return fc.constantFrom(...words).chain(({ wire, column: word }) => {
    const spelling =
      typeof wire === "number"
        ? spelled(BigInt(Math.round(wire * 10)), 1)
        : typeof wire === "string"
          ? spelledText(wire)
          : fc.constant(String(wire));
    return spelling.map((text) => ({
      wire: text,
      line: JSON.stringify(word),
      back: typeof wire === "number" ? String(wire) : JSON.stringify(wire),
    }));
  });
}

function exactCell(bare: boolean): fc.Arbitrary<Cell> {
  return fc
    .tuple(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), fc.integer({ min: 0, max: 40 }), fc.boolean())
    .chain(([big, scale, isSmall]) => {
      const value = isSmall ? big % 1_000_000n : big;
      const line = plainDecimal(value, scale);
      return bareOrText(value, scale, bare).map((wire) => ({
        wire,
        line: `"${line}"`,
        back: bare ? line : `"${line}"`,
      }));
    });
}

function integerCell(min: bigint, max: bigint, quoted: boolean): fc.Arbitrary<Cell> {
  const values = fc.oneof(fc.bigInt({ min, max }), fc.bigInt({ min: min < 0n ? -99n : 0n, max: 99n }));
  return values.chain((value) =>
    bareOrText(value, 0, true).map((wire) => ({
      wire,
      line: quoted ? `"${value}"` : `${value}`,
      back: `${value}`,
    })),
  );
}

const placesOf = { ns: 0, us: 3, ms: 6, s: 9 } as const;
const int64Max = 2n ** 63n - 1n;

function timeCell(unit: TimeUnit): fc.Arbitrary<Cell> {
  if (unit === "rfc3339") {
    return fc
      .tuple(
        fc.date({ min: new Date("1900-01-01"), max: new Date("2200-01-01"), noInvalidDate: true }),
        fc.integer({ min: 0, max: 999_999 }),
        fc.integer({ min: -18, max: 18 }),
        fc.constantFrom("", "0", "000"),
      )
      .map(([date, below, hours, zeros]) => {
        const ns = BigInt(date.getTime()) * 1_000_000n + BigInt(below);
        const local = new Date(date.getTime() + hours * 3_600_000).toISOString();
        const fraction = `${local.slice(20, 23)}${String(below).padStart(6, "0")}${zeros}`;
        const zone =
          hours === 0 ? "Z" : `${hours < 0 ? "-" : "+"}${String(Math.abs(hours)).padStart(2, "0")}:00`;
        const utc = `${date.toISOString().slice(0, 23)}${String(below).padStart(6, "0")}Z`;
        return { wire: `"${local.slice(0, 19)}.${fraction}${zone}"`, line: `"${ns}"`, back: `"${utc}"` };
      });
  }
  const near = 1_700_000_000_000_000_000n;
  return fc
    .oneof(
      fc.bigInt({ min: near, max: near + 10n ** 15n }),
      fc.bigInt({ min: -int64Max, max: int64Max }),
      fc
        .bigInt({ min: near / 1_000_000_000n, max: near / 1_000_000_000n + 1000n })
        .map((s) => s * 1_000_000_000n),
    )
    .chain((ns) =>
      bareOrText(ns, placesOf[unit], true).map((wire) => ({
        wire,
        line: `"${ns}"`,
        back: plainDecimal(ns, placesOf[unit]),
      })),
    );
}

function doubleCell(): fc.Arbitrary<Cell> {
  const numbers = fc
    .oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.double({ min: -1000, max: 1000, noNaN: true }),
      fc.integer().map((cents) => cents / 100),
    )
    .chain((number) => {
      const shortest = Object.is(number, -0) ? "-0" : String(number);
      return fc
        .constantFrom(
          shortest,
          shortest,
          number.toExponential(),
          number.toExponential(16),
          number.toPrecision(17),
          `"${shortest}"`,
          /^-?\d+$/.test(shortest) ? `${shortest}.0` : shortest,
        )
        .map((wire) => (Object.is(number, -0) ? "-0.0" : wire))
        .map((wire) => ({ wire, line: shortest, back: shortest }));
    });
  const special = fc
    .tuple(fc.constantFrom("NaN", "Infinity", "-Infinity"), fc.boolean())
    .map(([word, quoted]) => ({ wire: quoted ? `"${word}"` : word, line: `"${word}"`, back: `"${word}"` }));
  return fc.oneof({ weight: 9, arbitrary: numbers }, special);
}

function cellOf(
  { kind }: Column,
  source: ColumnSource & { kind: "field" },
  bare: boolean,
): fc.Arbitrary<Cell> {
  if (source.words !== undefined) return wordCell(source.words);
  switch (kind) {
    case "string":
      return textCell();
    case "exact":
      return exactCell(bare);
    case "double":
      return doubleCell();
    case "timestamp":
      return timeCell(source.unit ?? "ns");
    case "uint32":
      return integerCell(0n, 2n ** 32n - 1n, false);
    case "uint64":
      return integerCell(0n, 2n ** 64n - 1n, true);
    case "int64":
      return integerCell(-(2n ** 63n), 2n ** 63n - 1n, true);
  }
}

const units = fc.constantFrom<TimeUnit>("ns", "us", "ms", "s", "rfc3339");
const folders = fc.constantFrom<string[]>([], [], ["a"], ["a", "b.c"], ["ü"], ["x y", "z", "a"]);
const ownNames = fc.constantFrom("", "A", "é", "_of_the_gateway_with_a_long_name");

/** Any source for a column of the table. Names do not meet: each begins with its column's. */
function sourceOf({ name, kind }: Column): fc.Arbitrary<ColumnSource> {
  const field = fc.record({ folder: folders, ending: ownNames }).map(({ folder, ending }) => ({
    kind: "field" as const,
    path: [...folder, name + ending],
  }));
  const optional = fc.boolean().map((is) => (is ? { optional: true as const } : {}));
  if (name === "ts_event") return fc.tuple(field, units).map(([path, unit]) => ({ ...path, unit }));
  if (name === "seq") return fc.oneof(field, fc.constant({ kind: "derived" as const }));
  const fields = fc.tuple(field, optional).map(([path, may]) => ({ ...path, ...may }));
  if (kind === "timestamp") return fc.tuple(fields, units).map(([path, unit]) => ({ ...path, unit }));
  if (name === "side") {
    const words = [
      { wire: "B", column: "BUY" },
      { wire: 'S"é', column: "SELL" },
      { wire: 1, column: "ONE" },
      { wire: -2.5, column: 'T"W\nO' },
      { wire: true, column: "YES" },
      { wire: false, column: "NO" },
    ];
    return fields.map((path) => ({ ...path, words }));
  }
  const fixed: ColumnSource[] = [{ kind: "absent" }];
  if (kind === "string") fixed.push({ kind: "run" }, { kind: "instance" }, { kind: "constant", text: 'c"é' });
  return fc.oneof({ weight: 6, arbitrary: fields }, fc.constantFrom(...fixed));
}

function fixedText(source: Exclude<ColumnSource, { kind: "field" }>, { kind }: Column): string {
  switch (source.kind) {
    case "run":
      return JSON.stringify(run.runId);
    case "instance":
      return JSON.stringify(run.instanceId);
    case "absent":
      return empties[kind];
    case "derived":
      return '""';
    case "constant":
      return JSON.stringify(source.text);
  }
}

/** Members by name with what they hold, as they are built. */
type Growing = Map<string, string | Growing>;

function place(tree: Growing, path: readonly string[], text: string): void {
  let at = tree;
  for (const name of path.slice(0, -1)) {
    if (!at.has(name)) at.set(name, new Map());
    at = at.get(name) as Growing;
  }
  at.set(path.at(-1)!, text);
}

/** The same with its members in another order. */
function shuffled(tree: Growing, ranks: readonly number[]): Growing {
  const members = [...tree].map(([name, value], index) => ({
    name,
    value,
    rank: ranks[index % ranks.length]!,
  }));
  members.sort((a, b) => a.rank - b.rank);
  return new Map(
    members.map(({ name, value }) => [name, typeof value === "string" ? value : shuffled(value, ranks)]),
  );
}

/** What is left of a tree without the fields that columns take. */
function without(tree: Growing, taken: ReadonlySet<string>, above: readonly string[] = []): Growing {
  const rest: Growing = new Map();
  for (const [name, value] of tree) {
    const path = [...above, name];
    if (typeof value === "string") {
      if (!taken.has(JSON.stringify(path))) rest.set(name, value);
      continue;
    }
    const inside = without(value, taken, path);
    if (inside.size > 0) rest.set(name, inside);
  }
  return rest;
}

function jsonOf(tree: Growing, blank: () => string): string {
  const members = [...tree].map(([name, value]) => {
    const inside = typeof value === "string" ? value : jsonOf(value, blank);
    return `${blank()}${JSON.stringify(name)}${blank()}:${blank()}${inside}${blank()}`;
  });
  return `{${members.join(",")}}`;
}

/** Fields that are no column's; some stand beside columns' fields. */
const unknownPaths = [
  ["lot"],
  ["a", "isin"],
  ["a", "b.c", "odd"],
  ["ü", "Ü"],
  ["x y", "z", "a", "q"],
  ["__proto__"],
];

const json = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify(value));

function rowOf(map: RowMap): fc.Arbitrary<ForeignRow> {
  const sources = table.columns.map(({ name }) => map.columns[name]!);
  const cells = table.columns.map((column, index) =>
    cellsOf(column, sources[index]!, map.numbers === "exact"),
  );
  const unknown = fc
    .subarray(unknownPaths, { maxLength: 2 })
    .chain((paths) => fc.tuple(...paths.map((path) => json.map((text) => ({ path, text })))));
  const ranks = fc.oneof(fc.constant([0]), fc.array(fc.nat({ max: 50 }), { minLength: 20, maxLength: 20 }));
  const blanks = fc.array(fc.constantFrom("", "", "", " ", "\t", "\r", " \t "), {
    minLength: 1,
    maxLength: 9,
  });
  return fc.record({ cells: fc.tuple(...cells), unknown, ranks, blanks }).map((made) => {
    const wire: Growing = new Map();
    const back: Growing = new Map();
    const taken = new Set<string>();
    const members = made.cells.map((cell, index) => {
      const source = sources[index]!;
      if (source.kind === "field") {
        taken.add(JSON.stringify(source.path));
        if (cell.wire !== undefined) place(wire, source.path, cell.wire);
        if (cell.back !== undefined) place(back, source.path, cell.back);
      }
      return `${JSON.stringify(table.columns[index]!.name)}:${cell.line}`;
    });
    for (const { path, text } of made.unknown) {
      place(wire, path, text);
      place(back, path, text);
    }
    const sent = shuffled(wire, made.ranks);
    const extra = without(sent, taken);
    if (extra.size > 0) members.push(`"extra":${jsonOf(extra, () => "")}`);
    let next = 0;
    const text = jsonOf(sent, () => made.blanks[next++ % made.blanks.length]!);
    return { wire: text, line: `{${members.join(",")}}`, back: jsonOf(back, () => "") };
  });
}

function cellsOf(column: Column, source: ColumnSource, bare: boolean): fc.Arbitrary<Cell> {
  if (source.kind !== "field") {
    return fc.constant({ wire: undefined, line: fixedText(source, column), back: undefined });
  }
  const cell = cellOf(column, source, bare);
  const line = empties[column.kind];
  if (source.optional) {
    // what is empty is left out on the way back
    const values = cell.map((made) => (made.line === line ? { ...made, back: undefined } : made));
    const empty = fc.constantFrom<Cell>(
      { wire: undefined, line, back: undefined },
      { wire: "null", line, back: undefined },
    );
    return fc.oneof({ weight: 4, arbitrary: values }, empty);
  }
  if (column.kind !== "string" && column.kind !== "exact" && column.kind !== "double") return cell;
  const back = source.words === undefined ? line : "null";
  return fc.oneof({ weight: 9, arbitrary: cell }, fc.constant({ wire: "null", line, back }));
}

export const foreignTables: fc.Arbitrary<ForeignTable> = fc
  .record({
    numbers: fc.constantFrom<RowMap["numbers"]>("text", "exact"),
    sources: fc.tuple(...table.columns.map(sourceOf)),
  })
  .map(
    ({ numbers, sources }): RowMap => ({
      numbers,
      fields: "keep",
      ties: "bytes",
      dropped: [],
      columns: Object.fromEntries(sources.map((source, index) => [table.columns[index]!.name, source])),
    }),
  )
  .chain((map) => fc.array(rowOf(map), { minLength: 1, maxLength: 4 }).map((rows) => ({ map, rows })));

/** A JSON text as a value in which numbers are the texts that they are. */
export function numbersAsText(text: string): unknown {
  const revive = (_: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" ? { number: context?.source } : value;
  return JSON.parse(text, revive as (key: string, value: unknown) => unknown);
}
