import { RunvaultError } from "./error.ts";

/** The error for an option's (`flag`) file that cannot be read: wrong usage, except for disk errors. */
export function unreadable(file: string, error: unknown, flag?: string): RunvaultError {
  if (error instanceof RunvaultError) return error;
  const { code = "" } = error as NodeJS.ErrnoException;
  if (code === "EIO") return RunvaultError.from(error, { place: { file } });
  const why = error instanceof Error ? error.message.split(",")[0] : String(error);
  const what = flag === undefined ? "the file" : `${flag}: the file`;
  return new RunvaultError("invalid_argument", `${what} cannot be read: ${why}`, {
    cause: error,
    place: { file },
  });
}
