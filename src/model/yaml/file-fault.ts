import { RunvaultError } from "../error.ts";
import type { TreeFault } from "./tree.ts";

/** An error in, or a remark about, a file that people write. */
export interface FileFault {
  readonly level: "error" | "warning";
  /** As named by the user; null for a `--set` that cannot be parsed. */
  readonly file: string | null;
  /** From 1; both null for a `--set` or the whole file. */
  readonly line: number | null;
  readonly column: number | null;
  /** The `--set` with the value, such as `--set recheck`; null for one in the file. */
  readonly set: string | null;
  /** The key with dots, such as `gateway.budget.rps`; null for none. */
  readonly key: string | null;
  /** The text there; null if it is a secret, from the environment, or not a single value. */
  readonly text: string | null;
  readonly message: string;
  /** What to do, in one or two sentences. */
  readonly hint: string;
}

/** Adds the file to a fault of a tree. */
export function fileFault(
  fault: TreeFault,
  file: string | null,
  level: FileFault["level"] = "error",
): FileFault {
  const { place, key, text, message, hint } = fault;
  const isPlaced = place.kind === "file" && place.line > 0;
  return {
    level,
    file,
    line: isPlaced ? place.line : null,
    column: isPlaced ? place.column : null,
    set: place.kind === "set" ? place.flag : null,
    key: key === "" ? null : key,
    text,
    message,
    hint,
  };
}

/** A fault as an error that ends a command: wrong usage, at that place. */
export function faultError({ file, line, column, set, message, hint }: FileFault): RunvaultError {
  const place = {
    ...(file === null ? {} : { file }),
    ...(line === null ? {} : { line }),
    ...(column === null ? {} : { column }),
  };
  return new RunvaultError("invalid_argument", set === null ? message : `${set}: ${message}`, {
    place,
    hint,
  });
}
