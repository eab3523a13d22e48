import { z } from "zod";
import { RunvaultError } from "../../model/error.ts";
import { parseJson } from "../../model/outside-json.ts";
import { hashOf, type Manifest, manifestSchema } from "./manifest.ts";
import { fromFormat1, manifestSchema1 } from "./manifest-format-1.ts";

/** Parses a manifest. Throws `archive_damaged` with the file and the problem. */
export function parseManifest(text: string, file: string): Manifest {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (cause) {
    throw new RunvaultError("archive_damaged", "the manifest is not JSON", { cause, place: { file } });
  }
  const { sha256: written, ...rest } = (typeof value === "object" && value !== null ? value : {}) as Record<
    string,
    unknown
  >;
  if (written !== hashOf(rest)) {
    throw new RunvaultError(
      "archive_damaged",
      "the manifest was changed after it was committed: its hash does not match",
      { place: { file } },
    );
  }
  const { format, tool } = rest;
  if (typeof format === "number" && format > 2) {
    throw new RunvaultError(
      "archive_damaged",
      `the manifest has format ${format}, and this runvault reads 1 and 2: ${String(tool)} wrote it`,
      { place: { file }, hint: "Use that version, or a newer one; docs/upgrade.md says how to go back." },
    );
  }
  if (format === 1) return fromFormat1(checked(manifestSchema1, rest, file));
  return checked(manifestSchema, rest, file);
}

function checked<T>(schema: z.ZodType<T>, value: unknown, file: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new RunvaultError("archive_damaged", `the manifest is not valid: ${z.prettifyError(parsed.error)}`, {
    place: { file },
  });
}
