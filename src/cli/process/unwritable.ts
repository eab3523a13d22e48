import { RunvaultError } from "../../model/error.ts";

/** Why a file that an option names cannot be opened for writing: the disk's trouble, or wrong usage. */
export function unwritable(file: string, error: unknown): RunvaultError {
  const { code = "" } = error as NodeJS.ErrnoException;
  if (!wrongNames.has(code)) return RunvaultError.from(error, { place: { file } });
  const why = error instanceof Error ? error.message.split(",")[0] : String(error);
  return new RunvaultError("invalid_argument", `the file cannot be written: ${why}`, {
    cause: error,
    place: { file },
    hint: "Its folder must exist, and the name must not be that of a folder.",
  });
}

/** What is said of a path that no file can have, or that is something else's. */
const wrongNames: ReadonlySet<string> = new Set([
  "ENOENT",
  "ENOTDIR",
  "EISDIR",
  "ELOOP",
  "ENAMETOOLONG",
  "EINVAL",
  "EEXIST",
  "ENXIO",
]);
