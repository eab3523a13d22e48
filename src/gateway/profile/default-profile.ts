import { tableNames } from "../../model/profile/table.ts";
import { defaultRest } from "./default-rest.ts";
import type { Profile } from "./profile.ts";
import { defaultName } from "./read-profile-tree.ts";

/**
 * The built-in contract as a profile, from the tables that the code itself reads: what `extends: default` starts from. Its
 * rows are canonical as they come, so that it has no maps. Its RPC is the code's own, which no profile describes.
 */
export function defaultProfile(): Profile {
  return {
    name: defaultName,
    file: defaultName,
    headers: [],
    keys: [],
    rest: defaultRest,
    rpc: undefined,
    maps: {},
    none: [],
    described: tableNames,
  };
}
