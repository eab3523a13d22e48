import { access, constants, readFile, writeFile } from "node:fs/promises";
import { dirname, relative, resolve, sep } from "node:path";
import { parse } from "yaml";
import { draftProfile } from "../../gateway/profile/draft/draft-profile.ts";
import { draftRpcProfile, type RpcDraftRequest } from "../../gateway/profile/draft/draft-rpc.ts";
import { type KnownPath, openApiPaths } from "../../gateway/profile/draft/openapi-paths.ts";
import { exit, RunvaultError } from "../../model/error.ts";
import { askable, parseRun } from "../../model/run-argument.ts";
import { unreadable } from "../../model/unreadable.ts";
import { type GatewayValues, gatewaySettings, retryPolicyFor } from "../options/gateway-options.ts";
import type { Session } from "../process/session.ts";
import { unwritable } from "../process/unwritable.ts";

export interface DraftValues extends GatewayValues {
  readonly openapi?: string | undefined;
  readonly descriptors?: string | undefined;
  readonly out?: string | undefined;
}

/** Drafts a profile from a gateway's paths and rows, and prints it or writes it to a new file. */
export async function writeProfileDraft(
  run: string | undefined,
  values: DraftValues,
  session: Session,
): Promise<number> {
  if (run === undefined) {
    throw new RunvaultError("invalid_argument", "no run is named to ask for rows of", {
      hint: "Name one that has rows, by the gateway's own ids, as INSTANCE/RUN.",
    });
  }
  if (values.openapi !== undefined && values.descriptors !== undefined) {
    throw new RunvaultError(
      "invalid_argument",
      "--openapi and --descriptors are of two ways to one gateway",
      {
        hint: "Draft a profile by each, and put the second one's tables into the first.",
      },
    );
  }
  const wanted = askable(parseRun(run));
  if (values.descriptors !== undefined) await requireReadable(values.descriptors);
  const described = values.openapi === undefined ? undefined : await readOpenApi(values.openapi);
  const gateway = await gatewaySettings(
    { ...values, profile: undefined },
    retryPolicyFor(values, session),
    session,
  );
  const name = new URL(gateway.baseUrl).hostname
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 40);
  const asked = {
    gateway,
    name: name.replace(/^-|-$/g, "") || "gateway",
    run: wanted,
    signal: session.signal,
  };
  const text =
    values.descriptors === undefined
      ? await draftProfile({ ...asked, described })
      : await draftRpcProfile({ ...asked, descriptors: besideProfile(values.descriptors, values.out) });
  if (values.out === undefined || values.out === "-") {
    await session.print(text);
    return exit.done;
  }
  try {
    // a profile that somebody has worked on is never replaced
    await writeFile(values.out, text, { flag: "wx" });
  } catch (thrown) {
    throw unwritable(values.out, thrown);
  }
  session.note(`wrote ${values.out}: replace each "?", then check it with runvault profile check`);
  return exit.done;
}

async function requireReadable(file: string): Promise<void> {
  try {
    await access(file, constants.R_OK);
  } catch (cause) {
    throw unreadable(file, cause, "--descriptors");
  }
}

/** A descriptor set, and its name from the folder of the new profile on. */
function besideProfile(file: string, out: string | undefined): RpcDraftRequest["descriptors"] {
  const folder = out === undefined || out === "-" ? "." : dirname(out);
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
  throw new RunvaultError("invalid_argument", "--openapi: the file is no OpenAPI document", {
    place: { file },
    hint: "Give the JSON or YAML document that has the gateway's `paths`.",
  });
}
