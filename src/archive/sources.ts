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
  /** Where the source was reached, without secrets; ports and tunnels change while the source stays the same. */
  addresses: z.array(z.string()),
  /** Tables whose route has returned rows of some run: only for these can an empty answer mean that there are none. */
  routes: tableList,
  /** By instance, tables that have no rows by the operator's word. */
  empty: z.record(z.string(), tableList),
  /** This source's own words for a finished run. */
  finishedStatus: z.array(z.string()),
  /**
   * It has called a run final, so its statement that rows may still come is believed. Left out if that was not seen.
   */
  marksFinal: z.literal(true).optional(),
  /** The most rows and bytes in one answer: no cap ends answers much smaller than these. */
  largest: z.strictObject({ rows: size, bytes: size }).default(nothingYet),
  /** By instance without a commit, when a job began with its runs: no other source may begin with it meanwhile. */
  begun: z.record(z.string(), z.iso.datetime()).optional(),
});

/** What an archive remembers of one source. */
export type KnownSource = Readonly<z.infer<typeof sourceSchema>>;

const sourcesSchema = z.strictObject({ format: z.literal(1), sources: z.array(sourceSchema) });

/** What an archive knows about the source at an address; empty if it never met it. Throws `archive_damaged`. */
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
      hint: "Restore the file from a backup, or remove it: later jobs collect its contents again.",
    },
  );
}

/** Changes what is remembered about the source at an address. */
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

/** Adds an address to a known source and combines what is known about both. */
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
    const begun = { ...other.begun, ...one.begun };
    const marksFinal = one.marksFinal ?? other.marksFinal;
    const joined: KnownSource = {
      ...(marksFinal === undefined ? {} : { marksFinal }),
      ...(Object.keys(begun).length === 0 ? {} : { begun }),
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

/** After this time without a commit, a job's beginning no longer reserves its instance. */
const longestBegunMs = 24 * 3_600_000;

/**
 * Reserves instances that are not in the archive yet for a source. Returns those that another source has begun, each
 * with an address of it: instances with the same name at two gateways would be mixed up.
 */
export async function beginInstances(
  archive: Place,
  address: string,
  instances: readonly string[],
  now: Date,
): Promise<ReadonlyMap<string, string>> {
  if (instances.length === 0) return new Map();
  return await changeSources(archive, (sources) => {
    const own = find(sources, address) ?? newSource(address);
    const isLive = (at: string | undefined) =>
      at !== undefined && Math.abs(now.getTime() - Date.parse(at)) < longestBegunMs;
    const others = sources.filter((source) => source !== own);
    const taken = new Map<string, string>();
    for (const instance of instances) {
      const other = others.find(({ begun }) => isLive(entryOf(begun, instance)));
      if (other !== undefined) taken.set(instance, other.addresses[0] ?? "");
    }
    const live = Object.entries(own.begun ?? {}).filter(([, at]) => isLive(at));
    const fresh = instances.filter((instance) => !taken.has(instance)).map((one) => [one, now.toISOString()]);
    const after: KnownSource = { ...own, begun: Object.fromEntries([...live, ...fresh]) };
    const isKnown = sources.includes(own);
    return [taken, isKnown ? sources.map((one) => (one === own ? after : one)) : [...sources, after]];
  });
}

function entryOf(record: Readonly<Record<string, string>> | undefined, key: string): string | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}

/** Writes the list of sources from `change`, unless it is unchanged. */
async function changeSources<T>(
  archive: Place,
  change: (sources: readonly KnownSource[]) => [T, readonly KnownSource[]],
): Promise<T> {
  const file = archive.layout.sourcesFile;
  // one after another for the parallel jobs of this process
  const changing = (underChange.get(file) ?? Promise.resolve()).then(() => changeAlone(archive, change));
  const ended = changing.catch(() => {});
  underChange.set(file, ended);
  try {
    return await changing;
  } finally {
    if (underChange.get(file) === ended) underChange.delete(file);
  }
}

/** The last requested change, by the file of an archive's sources. */
const underChange = new Map<string, Promise<unknown>>();

/** If a job of another process was faster, reads its list and changes that. */
async function changeAlone<T>(
  archive: Place,
  change: (sources: readonly KnownSource[]) => [T, readonly KnownSource[]],
): Promise<T> {
  const { layout, store } = archive;
  const key = layout.keyOf(layout.sourcesFile);
  for (;;) {
    // read before the data that it identifies
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
