import type { SecretReading } from "../../model/secret-file.ts";
import type { Session } from "../process/session.ts";

/** How a command reads secret files: its log warns of those that others can read. */
export function secretReading({ log, signal }: Pick<Session, "log" | "signal">): SecretReading {
  return { signal, warn: (file, text) => log.warn({ file }, text) };
}
