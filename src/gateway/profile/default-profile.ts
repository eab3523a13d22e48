import { tableNames } from "../../model/profile/table.ts";
import { defaultRest } from "./default-rest.ts";
import type { Profile } from "./profile.ts";
import { defaultName } from "./read-profile-tree.ts";

/**
 * The built-in contract as a profile, from the tables that the code itself uses; `extends: default` starts from it. It
 * has no maps, because its rows are already canonical, and no RPC, which the code handles itself.
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
