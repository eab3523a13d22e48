import type { KeyPath } from "../../../model/yaml/tree.ts";

/** Collects the faults of a profile. */
export interface FaultContext {
  fault(path: KeyPath, message: string, hint: string): void;
  /** The first of these paths that exists; the last if none does. */
  firstOf(...paths: readonly KeyPath[]): KeyPath;
  /** A file system path, relative to the folder of the file that defines this tree path. */
  resolve(path: KeyPath, name: string): string;
}
