import type { z } from "zod";
import { tableNames } from "../../model/profile/table.ts";
import { type FileFault, faultError, fileFault } from "../../model/yaml/file-fault.ts";
import { issueFaults, meantIssues } from "../../model/yaml/issue-faults.ts";
import { type KeyPath, plainOf, type TreeFault, type TreeNode } from "../../model/yaml/tree.ts";
import { CompileContext } from "./compile-context.ts";
import { compileProfile } from "./compile-profile.ts";
import { defaultProfile } from "./default-profile.ts";
import type { Profile } from "./profile.ts";
import { profileFileKind } from "./profile-file-kind.ts";
import { type ProfileFile, profileSchema } from "./profile-schema.ts";
import { profileText } from "./profile-text.ts";
import { defaultName, readProfileTree } from "./read-profile-tree.ts";

/** The result of reading a profile; its `profile` is null if its file, or one that it extends, has errors. */
export interface ReadProfile {
  readonly profile: Profile | null;
  /** All errors, by file and line. */
  readonly faults: readonly FileFault[];
}

/**
 * Reads and checks a profile; `default` is the built-in contract. Never throws for a file's contents, and uses no
 * network.
 */
export async function readProfile(file: string): Promise<ReadProfile> {
  if (file === defaultName) return { profile: defaultProfile(), faults: [] };
  const { tree, faults, fileOf } = await readProfileTree(file, {
    defaultText: () => profileText(defaultProfile()),
  });
  if (tree === null) return { profile: null, faults };
  const parsed = profileSchema.safeParse(plainOf(tree));
  const wrong = parsed.success ? [] : wrongPaths(parsed.error.issues);
  const context = new CompileContext(tree, fileOf, wrong);
  const whole = parsed.success ? parsed.data : withoutWrong(tree, wrong);
  const profile = whole === null ? null : compileProfile(whole, file, context);
  const found = [
    ...(parsed.success ? [] : issueFaults(parsed.error.issues, tree, profileFileKind()).map(clearer)),
    ...context.faults,
  ];
  const all = [...faults, ...found.map((fault) => fileFault(fault, fileOf(fault.place)))];
  return all.length > 0 ? { profile: null, faults: inOrder(all, file) } : { profile, faults: [] };
}

/** The profile in a file. Throws all of its errors, each as `invalid_argument` with its place. */
export async function loadProfile(file: string): Promise<Profile> {
  const { profile, faults } = await readProfile(file);
  if (profile !== null) return profile;
  throw faultsError(file, faults);
}

/** All errors of a profile's file, as one error. */
export function faultsError(file: string, faults: readonly FileFault[]): Error {
  const errors = faults.map(faultError);
  return errors.length === 1 ? errors[0]! : new AggregateError(errors, `the profile ${file} cannot be used`);
}

function wrongPaths(issues: readonly z.core.$ZodIssue[]): readonly KeyPath[] {
  return issues
    .flatMap(meantIssues)
    .flatMap(({ issue, path }) =>
      issue.code === "unrecognized_keys" ? issue.keys.map((key) => [...path, key]) : [path],
    );
}

/** Explains an error by its likely cause: an unfinished draft, or a map with keys and values swapped. */
function clearer(fault: TreeFault): TreeFault {
  const { key, text } = fault;
  if (key === null || text === null) return fault;
  const guess = /^"?(\w*)\?"?$/.exec(text)?.[1];
  if (guess === "") {
    const column = /^(?:tables\.\w+|rows)\.columns\.\w+(?:\.from)?$/.test(key);
    return {
      ...fault,
      message: `${key} is still "?": the draft left it open`,
      hint: column
        ? "Name the field that it comes from, or write `absent`."
        : "Write what the gateway's documentation says.",
    };
  }
  if (guess !== undefined) {
    const message = `${key} is still an unconfirmed guess: ${guess}?`;
    return {
      ...fault,
      message,
      hint: `Look it up in the gateway's documentation: write ${guess} without ?, or the right value.`,
    };
  }
  const table = /^documents\.storage\.tables\.(\w+)$/.exec(key)?.[1];
  if (table === undefined || !(tableNames as readonly string[]).includes(table)) return fault;
  return { ...fault, hint: `The gateway's name comes first: \`{ ${text}: ${table} }\`.` };
}

/** A profile without its wrong values, so that the rest is still checked as a whole. */
function withoutWrong(tree: TreeNode, wrong: readonly KeyPath[]): ProfileFile | null {
  const plain = plainOf(tree);
  let paths = wrong;
  // a part that needs a removed value is removed as well
  for (let round = 0; round < 4; round += 1) {
    for (const path of paths) remove(plain, path);
    const parsed = profileSchema.safeParse(plain);
    if (parsed.success) return parsed.data;
    paths = wrongPaths(parsed.error.issues);
  }
  return null;
}

function remove(plain: unknown, path: KeyPath): void {
  let node = plain;
  for (const [index, step] of path.entries()) {
    if (typeof node !== "object" || node === null) return;
    const inside = (node as Record<string, unknown>)[step];
    if (index === path.length - 1 || Array.isArray(inside)) {
      delete (node as Record<string, unknown>)[step];
      return;
    }
    node = inside;
  }
}

/** Sorts faults by line within each file, the requested file first. */
function inOrder(faults: readonly FileFault[], file: string): FileFault[] {
  const rank = (fault: FileFault) => (fault.file === file ? 0 : 1);
  return [...faults].sort(
    (a, b) =>
      rank(a) - rank(b) ||
      (a.file ?? "").localeCompare(b.file ?? "") ||
      (a.line ?? 0) - (b.line ?? 0) ||
      (a.column ?? 0) - (b.column ?? 0),
  );
}
