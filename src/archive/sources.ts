import { z } from "zod";
import { RunvaultError } from "../model/error.ts";
import { parseJson } from "../model/outside-json.ts";
import { type TableName, tableNames } from "../model/table.ts";
import { mostBytes, readArchiveText } from "./archive-file.ts";
import { removeAsides, replaceFile } from "./durable.ts";
import type { Layout } from "./layout.ts";
import { permissionsAt } from "./permissions.ts";

const tableList = z.array(z.enum(tableNames as [TableName, ...TableName[]]));

const size = z.int().nonnegative();
const nothingYet = { rows: 0, bytes: 0 };

const sourceSchema = z.strictObject({
  /** Where the source was met, without secrets; ports and tunnels change while the source stays the same. */
  addresses: z.array(z.string()),
  /** Tables whose route has given rows of some run: of these alone can an empty answer mean that there are none. */
  routes: tableList,
  /** By instance, tables of which the operator said that they hold no rows. */
  empty: z.record(z.string(), tableList),
  /** Words of this source's own for a run that has ended. */
  finishedStatus: z.array(z.string()),
  /** The most rows and the most bytes that it gave in one answer: no cap ends answers much smaller than these. */
  largest: z.strictObject({ rows: size, bytes: size }).default(nothingYet),
});

/** What an archive remembers of one source. */
export type KnownSource = Readonly<z.infer<typeof sourceSchema>>;

const sourcesSchema = z.strictObject({ format: z.literal(1), sources: z.array(sourceSchema) });

/** What an archive knows of the source at an address; nothing where it never met it. Throws `archive_damaged`. */
export async function knownSource(layout: Layout, address: string): Promise<KnownSource> {
  return find(await readSources(layout), address) ?? newSource(address);
}

/** Every source that an archive has met. Throws `archive_damaged`. */
export async function readSources(layout: Layout): Promise<readonly KnownSource[]> {
  const file = layout.sourcesFile;
  const text = await readArchiveText(layout, file, mostBytes.sources);
  if (text === null) return [];
  const parsed = sourcesSchema.safeParse(jsonOrNull(text));
  if (parsed.success) return parsed.data.sources;
  throw new RunvaultError(
    "archive_damaged",
    `the record of sources is not valid: ${z.prettifyError(parsed.error)}`,
    {
      place: { file },
      hint: "Restore the file from a backup, or remove it: later jobs learn again what was in it.",
    },
  );
}

/**
 * Changes what is remembered of the source at an address. It is read again first, so that of two jobs at once the later
 * adds to what the earlier wrote; what is lost between the two is only learnt, or said, once more.
 */
export async function rememberSource(
  layout: Layout,
  address: string,
  change: (known: KnownSource) => KnownSource,
): Promise<KnownSource> {
  const sources = await readSources(layout);
  const before = find(sources, address);
  const known = before ?? newSource(address);
  const after = change(known);
  if (before !== undefined && JSON.stringify(after) === JSON.stringify(before)) return before;
  await writeSources(
    layout,
    before === undefined ? [...sources, after] : sources.map((one) => (one === before ? after : one)),
  );
  return after;
}

/** Takes an address for one more of a known source: what was learnt under either is known of both. */
export async function joinAddress(layout: Layout, known: string, address: string): Promise<KnownSource> {
  const sources = await readSources(layout);
  const [one, other] = [
    find(sources, known) ?? newSource(known),
    find(sources, address) ?? newSource(address),
  ];
  if (one === other) return one;
  const empty: Record<string, TableName[]> = { ...one.empty };
  for (const [instance, named] of Object.entries(other.empty)) {
    empty[instance] = distinct([...(empty[instance] ?? []), ...named]);
  }
  const joined: KnownSource = {
    addresses: distinct([...one.addresses, ...other.addresses]),
    routes: distinct([...one.routes, ...other.routes]),
    empty,
    finishedStatus: distinct([...one.finishedStatus, ...other.finishedStatus]),
    largest: {
      rows: Math.max(one.largest.rows, other.largest.rows),
      bytes: Math.max(one.largest.bytes, other.largest.bytes),
    },
  };
  await writeSources(layout, [...sources.filter((source) => source !== one && source !== other), joined]);
  return joined;
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}

async function writeSources(layout: Layout, sources: readonly KnownSource[]): Promise<void> {
  const text = `${JSON.stringify({ format: 1, sources }, null, 1)}\n`;
  const { file: mode } = await permissionsAt(layout, layout.sourcesFile);
  await replaceFile(layout.sourcesFile, Buffer.from(text), mode);
  await removeAsides(layout.sourcesFile);
}

function find(sources: readonly KnownSource[], address: string): KnownSource | undefined {
  return sources.find(({ addresses }) => addresses.includes(address));
}

function newSource(address: string): KnownSource {
  return { addresses: [address], routes: [], empty: {}, finishedStatus: [], largest: nothingYet };
}

function jsonOrNull(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}
