import { z } from "zod";
import { RunvaultError } from "../model/error.ts";
import { parseJson } from "../model/outside-json.ts";
import { type TableName, tableNames } from "../model/profile/table.ts";
import type { Archive } from "./archive.ts";
import { mostBytes } from "./storage/archive-file.ts";
import { removeLeftovers } from "./storage/remove-leftovers.ts";

type Place = Pick<Archive, "layout" | "store">;

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
export async function knownSource(archive: Place, address: string): Promise<KnownSource> {
  return find(await readSources(archive), address) ?? newSource(address);
}

/** Every source that an archive has met. Throws `archive_damaged`. */
export async function readSources({ layout, store }: Place): Promise<readonly KnownSource[]> {
  const bytes = await store.get(layout.keyOf(layout.sourcesFile), mostBytes.sources);
  if (bytes === null) return [];
  const parsed = sourcesSchema.safeParse(jsonOrNull(bytes.toString("utf8")));
  if (parsed.success) return parsed.data.sources;
  throw new RunvaultError(
    "archive_damaged",
    `the record of sources is not valid: ${z.prettifyError(parsed.error)}`,
    {
      place: { file: layout.sourcesFile },
      hint: "Restore the file from a backup, or remove it: later jobs learn again what was in it.",
    },
  );
}

/** Changes what is remembered of the source at an address. */
export async function rememberSource(
  archive: Place,
  address: string,
  change: (known: KnownSource) => KnownSource,
): Promise<KnownSource> {
  return await changeSources(archive, (sources) => {
    const before = find(sources, address);
    const after = change(before ?? newSource(address));
    if (before === undefined) return [after, [...sources, after]];
    if (JSON.stringify(after) === JSON.stringify(before)) return [before, sources];
    return [after, sources.map((one) => (one === before ? after : one))];
  });
}

/** Takes an address for one more of a known source: what was learnt under either is known of both. */
export async function joinAddress(archive: Place, known: string, address: string): Promise<KnownSource> {
  return await changeSources(archive, (sources) => {
    const [one, other] = [
      find(sources, known) ?? newSource(known),
      find(sources, address) ?? newSource(address),
    ];
    if (one === other) return [one, sources];
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
    return [joined, [...sources.filter((source) => source !== one && source !== other), joined]];
  });
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}

/**
 * Writes the list of sources that `change` gives behind its result, unless that is the list as it was. Where another job
 * was faster, what it wrote is read, and changed, too.
 */
async function changeSources<T>(
  archive: Place,
  change: (sources: readonly KnownSource[]) => [T, readonly KnownSource[]],
): Promise<T> {
  const { layout, store } = archive;
  const key = layout.keyOf(layout.sourcesFile);
  for (;;) {
    // ahead of what it tells apart
    const token = (await store.head(key))?.token;
    const before = await readSources(archive);
    const [result, sources] = change(before);
    if (sources === before) return result;
    const body = Buffer.from(`${JSON.stringify({ format: 1, sources }, null, 1)}\n`);
    const written =
      token === undefined ? await store.putIfAbsent(key, body) : await store.replaceIf(key, body, token);
    if (written === null) continue;
    await removeLeftovers(store, key);
    return result;
  }
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
