import type { KeyPath } from "../../../model/yaml/tree.ts";

/** Where faults of a profile are told. */
export interface FaultContext {
  fault(path: KeyPath, message: string, hint: string): void;
  /** The first of these paths at which something stands; the last where nothing does. */
  firstOf(...paths: readonly KeyPath[]): KeyPath;
  /** A path of the file system, from the folder of the file on that has it at a path of the tree. */
  resolve(path: KeyPath, name: string): string;
}
