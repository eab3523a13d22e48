import type { KeyPath } from "../../../model/yaml/tree.ts";

/** Collects the faults of a profile. */
export interface FaultContext {
  fault(path: KeyPath, message: string, hint: string): void;
  /** The first of these paths that exists, or else the last. */
  firstOf(...paths: readonly KeyPath[]): KeyPath;
  /** Resolves a file's path from the folder of the profile file that defines this key. */
  resolve(path: KeyPath, name: string): string;
}
