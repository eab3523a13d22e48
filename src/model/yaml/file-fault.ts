import { RunvaultError } from "../error.ts";
import type { TreeFault } from "./tree.ts";

/** Something that is wrong with a file that people write, or worth a word. */
export interface FileFault {
  readonly level: "error" | "warning";
  /** The file as it was named; null for a `--set` that cannot be read. */
  readonly file: string | null;
  /** From 1; both null if a `--set` or the whole file is at fault. */
  readonly line: number | null;
  readonly column: number | null;
  /** The `--set` whose value it is about, such as `--set recheck`; null for one of the file. */
  readonly set: string | null;
  /** The key with dots, such as `gateway.budget.rps`; null if it is about no key. */
  readonly key: string | null;
  /** What was written there; null if it is a secret, came from the environment, or is no single value. */
  readonly text: string | null;
  readonly message: string;
  /** What to do, one sentence or two. */
  readonly hint: string;
}

/** A fault of a tree, now that it is known which file it is of. */
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

/** A fault as an error that ends a command: wrong usage, in that place. */
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
