import { shownText } from "../../model/yaml/issue-faults.ts";
import {
  type KeyPath,
  keyText,
  nodeAt,
  placeAt,
  type TreeFault,
  type TreeNode,
} from "../../model/yaml/tree.ts";
import type { Job } from "./job-schema.ts";
import type { JobVariable } from "./variables.ts";

/** What a job file's profile adds. */
export interface JobProfile {
  readonly faults: readonly TreeFault[];
  /** Variables that hold the values of its headers and keys. */
  readonly variables: readonly JobVariable[];
}

export const noProfile: JobProfile = { faults: [], variables: [] };

const key: KeyPath = ["gateway", "profile"];

/** Reads a job file's profile. Errors in it are reported at the key that names it. */
export async function readJobProfile({ gateway }: Job, tree: TreeNode): Promise<JobProfile> {
  if (gateway.profile === undefined) return noProfile;
  // this loads protobuf, which most job files do not need
  const { readProfile } = await import("../../gateway/profile/load-profile.ts");
  const { profile, faults } = await readProfile(gateway.profile);
  const node = nodeAt(tree, key);
  const isShown = node?.kind === "scalar" && node.variables.length === 0;
  const text = isShown ? shownText(node.written) : null;
  return {
    faults: faults.map(({ file, line, column, message, hint }) => {
      // a file named by the environment stays unnamed
      const where = [isShown && file !== gateway.profile ? file : null, line, column].filter(
        (part) => part !== null,
      );
      const told = where.length === 0 ? message : `${where.join(":")}: ${message}`;
      return {
        place: placeAt(tree, key),
        key: keyText(key),
        text,
        message: `${keyText(key)}: ${told}`,
        hint,
      };
    }),
    variables: [...(profile?.headers ?? []), ...(profile?.keys ?? [])].flatMap(({ from }) =>
      "env" in from ? [{ name: from.env, isNeeded: true }] : [],
    ),
  };
}
