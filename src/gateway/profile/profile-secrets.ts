import { RunvaultError } from "../../model/error.ts";
import { readTokenFile, type SecretReading } from "../../model/secret-file.ts";
import type { Scrubber } from "../../model/text/scrubber.ts";
import type { Profile, ProfileSecret } from "./profile.ts";

/** Values of a profile's headers and keys, by name. */
export interface ProfileSecrets {
  readonly headers: Readonly<Record<string, string>>;
  readonly keys: Readonly<Record<string, string>>;
}

export interface ProfileSecretsReading extends SecretReading {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Learns each value, and removes it from all output. */
  readonly scrubber: Pick<Scrubber, "add">;
}

/**
 * Reads the values of a profile's headers and keys, from the environment and from files next to it. Throws
 * `invalid_argument` if one is missing.
 */
export async function readProfileSecrets(
  profile: Pick<Profile, "file" | "headers" | "keys">,
  reading: ProfileSecretsReading,
): Promise<ProfileSecrets> {
  return {
    headers: await valuesOf("headers", profile.headers, profile.file, reading),
    keys: await valuesOf("rest.keys", profile.keys, profile.file, reading),
  };
}

async function valuesOf(
  key: string,
  secrets: readonly ProfileSecret[],
  file: string,
  reading: ProfileSecretsReading,
): Promise<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const { name, from } of secrets) {
    const what = `${key}.${name} of the profile`;
    const value =
      "env" in from
        ? variableValue(what, from.env, file, reading.env)
        : await readTokenFile(what, from.file, reading);
    reading.scrubber.add(value);
    values[name] = value;
  }
  return values;
}

function variableValue(what: string, name: string, file: string, env: ProfileSecretsReading["env"]): string {
  const value = (env[name] ?? "").trim();
  if (value !== "") return value;
  throw new RunvaultError(
    "invalid_argument",
    `${what} needs the environment variable ${name}, which is not set`,
    {
      place: { file },
      hint: `Set ${name}, or name another variable in the profile.`,
    },
  );
}
