import { z } from "zod";
import { fileFault } from "../../model/yaml/file-fault.ts";
import { issueFaults } from "../../model/yaml/issue-faults.ts";
import { plainOf } from "../../model/yaml/tree.ts";
import { CompileContext } from "./compile-context.ts";
import { secretsOf } from "./compile-profile.ts";
import { defaultProfile } from "./default-profile.ts";
import { faultsError } from "./load-profile.ts";
import type { Profile } from "./profile.ts";
import { profileFileKind } from "./profile-file-kind.ts";
import { profileText } from "./profile-text.ts";
import { readProfileTree } from "./read-profile-tree.ts";
import { baseSchema } from "./request-schema.ts";
import { rpcSchema } from "./rpc/rpc-schema.ts";
import { headersSchema, keysSchema } from "./secret-schema.ts";

/** The part of a profile that every request needs. */
export interface ProfileAccess extends Pick<Profile, "file" | "headers" | "keys"> {
  /** Prefix of every REST path; undefined if the file does not say. */
  readonly base: string | undefined;
  /** Path below which RPC methods are; undefined if the file does not say. */
  readonly rpcBase: string | undefined;
}

const schema = z.object({
  headers: headersSchema.optional(),
  rest: z.object({ base: baseSchema.optional(), keys: keysSchema.optional() }).optional(),
  rpc: z.object({ base: rpcSchema.shape.base }).optional(),
});

/**
 * Headers, keys and bases of a profile that may be unfinished: the rest of its file is ignored. Throws all errors in
 * these, each as `invalid_argument` with its place.
 */
export async function loadAccess(file: string): Promise<ProfileAccess> {
  const options = { defaultText: () => profileText(defaultProfile()) };
  const { tree, faults, fileOf } = await readProfileTree(file, options);
  if (tree === null || faults.length > 0) throw faultsError(file, faults);
  const context = new CompileContext(tree, fileOf);
  const parsed = schema.safeParse(plainOf(tree));
  const { headers, rest, rpc } = parsed.data ?? {};
  const access = {
    file,
    headers: secretsOf("headers", headers ?? {}, context),
    keys: secretsOf("keys", rest?.keys ?? {}, context),
    base: rest?.base,
    rpcBase: rpc?.base,
  };
  const wrong = parsed.success ? [] : issueFaults(parsed.error.issues, tree, profileFileKind());
  const all = [...wrong, ...context.faults].map((fault) => fileFault(fault, fileOf(fault.place)));
  if (all.length > 0) throw faultsError(file, all);
  return access;
}
