import { hasDerivedSeq } from "../../model/profile/row-map.ts";
import type { Through } from "./manifest.ts";

/** What is worth telling of the way that rows came; nothing of those that came as the contract has them. */
export function throughWords(through: Through | undefined): string[] {
  if (through === undefined) return [];
  const { profile, map, notes } = through;
  return [
    ...(profile === "" ? [] : [`by the profile ${profile}`]),
    ...(hasDerivedSeq(map) ? ["seq derived"] : []),
    ...notes,
  ];
}
