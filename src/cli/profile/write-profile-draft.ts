import { access, constants, readFile, writeFile } from "node:fs/promises";
import { dirname, relative, resolve, sep } from "node:path";
import { parse } from "yaml";
import { draftProfile } from "../../gateway/profile/draft/draft-profile.ts";
import { draftRpcProfile, type RpcDraftRequest } from "../../gateway/profile/draft/rpc/draft-rpc.ts";
import { type KnownPath, openApiPaths } from "../../gateway/profile/draft/seen/openapi-paths.ts";
import { loadAccess, type ProfileAccess } from "../../gateway/profile/load-access.ts";
import { type ProfileSecrets, readProfileSecrets } from "../../gateway/profile/profile-secrets.ts";
import { exit, RunvaultError } from "../../model/error.ts";
import { askable, parseRun } from "../../model/run-argument.ts";
import { unreadable } from "../../model/unreadable.ts";
import { type GatewayValues, gatewaySettings, retryPolicyFor } from "../options/gateway-options.ts";
import { secretReading } from "../options/secret-reading.ts";
import type { Session } from "../process/session.ts";
import { unwritable } from "../process/unwritable.ts";

export interface DraftValues extends GatewayValues {
  readonly openapi?: string | undefined;
  readonly descriptors?: string | undefined;
  readonly out?: string | undefined;
}

/** Drafts a profile from a gateway's paths, lists and rows, and prints it or writes it to a new file. */
export async function writeProfileDraft(
  run: string | undefined,
  values: DraftValues,
  session: Session,
): Promise<number> {
  if (values.openapi !== undefined && values.descriptors !== undefined) {
    throw new RunvaultError(
      "invalid_argument",
      "--openapi and --descriptors cannot be combined: they describe different protocols",
      {
        hint: "Draft a profile with each, and copy the second one's tables into the first.",
      },
    );
  }
  const wanted = run === undefined ? undefined : askable(parseRun(run));
  if (values.descriptors !== undefined) await requireReadable(values.descriptors);
  const described = values.openapi === undefined ? undefined : await readOpenApi(values.openapi);
  const access = isOwn(values.profile) ? await loadAccess(values.profile) : undefined;
  const settings = await gatewaySettings(
    { ...values, profile: undefined },
    retryPolicyFor(values, session),
    session,
  );
  const gateway = { ...settings, ...(access === undefined ? {} : await secretsFor(access, session)) };
  const name = new URL(gateway.baseUrl).hostname
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 40);
  const folder = values.out === undefined || values.out === "-" ? "." : dirname(values.out);
  const asked = {
    gateway,
    name: name.replace(/^-|-$/g, "") || "gateway",
    run: wanted,
    headers: access?.headers ?? [],
    folder,
    signal: session.signal,
  };
  const { text, warning } =
    values.descriptors === undefined
      ? await draftProfile({
          ...asked,
          base: access?.base,
          keys: access?.keys ?? [],
          described,
        })
      : await draftRpcProfile({
          ...asked,
          base: access?.rpcBase,
          descriptors: besideProfile(values.descriptors, folder),
        });
  if (warning !== undefined) session.log.warn(warning);
  // a gateway may repeat the request's secrets
  const shown = session.scrubber.scrub(text);
  if (values.out === undefined || values.out === "-") {
    await session.print(shown);
    return exit.done;
  }
  try {
    // an edited profile must never be overwritten
    await writeFile(values.out, shown, { flag: "wx" });
  } catch (thrown) {
    throw unwritable(values.out, thrown);
  }
  session.note(
    `wrote ${values.out}: confirm or correct each value that ends in ?, then check it with runvault profile check`,
  );
  return exit.done;
}

function isOwn(profile: string | undefined): profile is string {
  return profile !== undefined && profile !== "default";
}

async function secretsFor(access: ProfileAccess, session: Session): Promise<ProfileSecrets> {
  const { env } = session.terminal;
  return await readProfileSecrets(access, { env, scrubber: session.scrubber, ...secretReading(session) });
}

async function requireReadable(file: string): Promise<void> {
  try {
    await access(file, constants.R_OK);
  } catch (cause) {
    throw unreadable(file, cause, "--descriptors");
  }
}

/** A descriptor set, and its path relative to the new profile's folder. */
function besideProfile(file: string, folder: string): RpcDraftRequest["descriptors"] {
  return { file: resolve(file), written: relative(folder, file).replaceAll(sep, "/") };
}

async function readOpenApi(
  file: string,
): Promise<{ readonly base: string; readonly paths: readonly KnownPath[] }> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw unreadable(file, cause, "--openapi");
  }
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 100 });
  } catch {
    value = undefined;
  }
  const paths = openApiPaths(value);
  if (paths !== undefined) return paths;
  throw new RunvaultError("invalid_argument", "--openapi: the file is not an OpenAPI document", {
    place: { file },
    hint: "Give the JSON or YAML document that has the gateway's `paths`.",
  });
}
