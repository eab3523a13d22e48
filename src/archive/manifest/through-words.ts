import { hasDerivedSeq } from "../../model/profile/row-map.ts";
import type { Through } from "./manifest.ts";

/** Notable facts about how rows came; empty for rows that came as the contract says. */
export function throughWords(through: Through | undefined): string[] {
  if (through === undefined) return [];
  const { profile, map, notes } = through;
  return [
    ...(profile === "" ? [] : [`by the profile ${profile}`]),
    ...(hasDerivedSeq(map) ? ["seq derived"] : []),
    ...notes,
  ];
}
