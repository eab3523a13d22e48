import { tableNames } from "../../model/profile/table.ts";
import { defaultRest } from "./default-rest.ts";
import type { Profile } from "./profile.ts";
import { defaultName } from "./read-profile-tree.ts";

/**
 * The built-in contract as a profile, made from the constants that the code uses; `extends: default` starts from it. It
 * has no maps, because its rows are already canonical, and no RPC, because built-in code handles that.
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
