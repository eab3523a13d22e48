import type { InstanceEntry } from "../model/source.ts";

/** Adds the instances and runs that the profile gives by name to those that a document lists. */
export function withGiven(
  listed: readonly InstanceEntry[],
  given: Readonly<Record<string, readonly string[]>>,
): readonly InstanceEntry[] {
  const entries = listed.map(({ instanceId, runIds }) => ({
    instanceId,
    runIds: [...new Set([...runIds, ...(Object.hasOwn(given, instanceId) ? given[instanceId]! : [])])],
  }));
  const names = new Set(listed.map(({ instanceId }) => instanceId));
  const added = Object.entries(given).filter(([instanceId]) => !names.has(instanceId));
  return [...entries, ...added.map(([instanceId, runIds]) => ({ instanceId, runIds: [...runIds] }))];
}
