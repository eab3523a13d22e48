import { basename, dirname } from "node:path";
import type { Archive } from "../../archive/archive.ts";
import { RunvaultError } from "../../model/error.ts";
import type { RunRef } from "../../model/source.ts";
import { idsText, type ListFinding, listNote } from "./list-finding.ts";

/**
 * A note about instances whose archived runs all came from other addresses than these: two gateways may have instances
 * with the same name. None if there are no such instances.
 */
export async function foreignInstances(
  archive: Archive,
  runs: readonly RunRef[],
  addresses: readonly string[],
): Promise<ListFinding[]> {
  const folders = Map.groupBy(await archive.manifestFiles(), (file) => basename(dirname(file)));
  const foreign = new Map<string, string>();
  for (const instanceId of new Set(runs.map((run) => run.instanceId))) {
    const files = folders.get(archive.layout.instanceFolder(instanceId)) ?? [];
    const other = await otherSource(archive, files, addresses);
    if (other !== null) foreign.set(instanceId, other);
  }
  const [address] = foreign.values();
  if (address === undefined) return [];
  const text = `warning: the archive holds runs of ${idsText([...foreign.keys()])} from another gateway, ${address}; unless it is the same gateway at a new address, use another archive, because the runs of both would be mixed`;
  return [listNote(null, [], text)];
}

/** The address that the runs came from; null if there are none, or if one came from the given addresses. */
async function otherSource(
  archive: Archive,
  files: readonly string[],
  addresses: readonly string[],
): Promise<string | null> {
  let other: string | null = null;
  for (const file of files) {
    try {
      const manifest = await archive.manifestIn(file);
      if (manifest !== null && addresses.includes(manifest.source)) return null;
      other ??= manifest?.source ?? null;
    } catch (thrown) {
      // a damaged manifest is reported with its run
      if (RunvaultError.from(thrown).code !== "archive_damaged") throw thrown;
    }
  }
  return other;
}
