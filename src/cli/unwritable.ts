import { RunvaultError } from "../model/error.ts";

/** Why a file that an option names cannot be opened for writing: the disk's trouble, or wrong usage. */
export function unwritable(file: string, error: unknown): RunvaultError {
  const known = RunvaultError.from(error, { place: { file } });
  if (known.code !== "internal") return known;
  const why = error instanceof Error ? error.message.split(",")[0] : String(error);
  return new RunvaultError("invalid_argument", `the file cannot be written: ${why}`, {
    cause: error,
    place: { file },
    hint: "Its folder has to be there, and the name must not be that of a folder.",
  });
}
