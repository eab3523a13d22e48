import { RunvaultError } from "../../model/error.ts";

/** The error for an option's file that cannot be opened for writing: a storage error or wrong usage. */
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

/** Explanations for paths that cannot be a file, or that belong to something else. */
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
