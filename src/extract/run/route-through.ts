import type { Through } from "../../archive/manifest/manifest.ts";
import { rowMapFingerprint } from "../../model/profile/row-map.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { HistorySource } from "../../model/source.ts";

/** The map and profile that a source's rows of a table come through; undefined if they come as in the contract. */
export function routeThrough(source: Pick<HistorySource, "traits">, table: TableName): Through | undefined {
  const traits = source.traits?.(table);
  if (traits === undefined) return undefined;
  const { map, notes, profile } = traits;
  if (map === undefined && notes.length === 0 && profile === undefined) return undefined;
  return {
    profile: profile ?? "",
    ...(map === undefined ? {} : { map, fingerprint: rowMapFingerprint(map) }),
    notes: [...notes],
  };
}
